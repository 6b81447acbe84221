#pragma once

#include <windows.h>

#include <functional>

namespace pointsman::service {

enum class State { kRunning, kStopping, kStopped };

/// What the service manager asks for.
struct Control {
  bool stop = false;
  /// The machine is going down.
  bool shutdown = false;

  bool any() const { return stop || shutdown; }
  void merge(const Control& other) {
    stop = stop || other.stop;
    shutdown = shutdown || other.shutdown;
  }
};

/// Connects this process, which must be one that the service manager started, to it as the one service of the process; waits until the manager has answered.
/// From then on `on_control` is called on a thread of its own. Answers the HRESULT of a failure, S_OK otherwise. A process connects once.
HRESULT connect(std::function<void(const Control&)> on_control);

/// Ends the callbacks about controls.
void disconnect();

/// Reports the state of the service to the manager. `seconds` is how long to wait at most for the next report of one that is stopping, `exit_code` that of
/// one that has stopped.
HRESULT report(State state, DWORD seconds, DWORD exit_code);

}  // namespace pointsman::service
