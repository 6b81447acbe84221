#include "service/service.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace pointsman::service {

namespace {

constexpr DWORD kStartSeconds = 60;

/// A process is one service, and the manager hands nothing over by which its functions could find an object: the one state of the addon that is not an
/// environment's.
struct Connection {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void(const Control&)> on_control;
  SERVICE_STATUS_HANDLE handle = nullptr;
  /// Once it is known.
  std::optional<HRESULT> outcome;
  bool started = false;
};

Connection& connection() {
  static Connection one;
  return one;
}

HRESULT last_error() { return HRESULT_FROM_WIN32(GetLastError()); }

HRESULT set_status(SERVICE_STATUS_HANDLE handle, DWORD state, DWORD seconds, DWORD exit_code) {
  SERVICE_STATUS status{};
  status.dwServiceType = SERVICE_WIN32_OWN_PROCESS;
  status.dwCurrentState = state;
  status.dwControlsAccepted = state == SERVICE_RUNNING ? SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_SHUTDOWN : 0;
  status.dwWin32ExitCode = exit_code == 0 ? NO_ERROR : ERROR_SERVICE_SPECIFIC_ERROR;
  status.dwServiceSpecificExitCode = exit_code;
  status.dwWaitHint = seconds * 1000;
  return SetServiceStatus(handle, &status) ? S_OK : last_error();
}

void settle(HRESULT outcome) {
  Connection& to = connection();
  const std::lock_guard lock(to.mutex);
  if (!to.outcome) to.outcome = outcome;
  to.changed.notify_all();
}

DWORD WINAPI controlled(DWORD code, DWORD, void*, void*) {
  if (code == SERVICE_CONTROL_INTERROGATE) return NO_ERROR;
  const Control control{code == SERVICE_CONTROL_STOP, code == SERVICE_CONTROL_SHUTDOWN};
  if (!control.any()) return ERROR_CALL_NOT_IMPLEMENTED;
  Connection& to = connection();
  const std::lock_guard lock(to.mutex);
  if (to.on_control) to.on_control(control);
  return NO_ERROR;
}

void WINAPI service_main(DWORD, PWSTR*) {
  wchar_t name[] = L"";
  const SERVICE_STATUS_HANDLE handle = RegisterServiceCtrlHandlerExW(name, controlled, nullptr);
  if (handle == nullptr) return settle(last_error());
  {
    Connection& to = connection();
    const std::lock_guard lock(to.mutex);
    to.handle = handle;
  }
  settle(set_status(handle, SERVICE_START_PENDING, kStartSeconds, 0));
}

}  // namespace

HRESULT connect(std::function<void(const Control&)> on_control) {
  Connection& to = connection();
  {
    const std::lock_guard lock(to.mutex);
    if (std::exchange(to.started, true)) return HRESULT_FROM_WIN32(ERROR_SERVICE_ALREADY_RUNNING);
    to.on_control = std::move(on_control);
  }
  // The dispatcher keeps its thread until the service has stopped.
  std::thread([] {
    wchar_t name[] = L"";
    const SERVICE_TABLE_ENTRYW table[] = {{name, service_main}, {nullptr, nullptr}};
    settle(StartServiceCtrlDispatcherW(table) ? S_OK : last_error());
  }).detach();
  std::unique_lock lock(to.mutex);
  to.changed.wait(lock, [&to] { return to.outcome.has_value(); });
  return *to.outcome;
}

void disconnect() {
  Connection& to = connection();
  const std::lock_guard lock(to.mutex);
  to.on_control = nullptr;
}

HRESULT report(State state, DWORD seconds, DWORD exit_code) {
  Connection& to = connection();
  const std::lock_guard lock(to.mutex);
  if (to.handle == nullptr) return HRESULT_FROM_WIN32(ERROR_SERVICE_NOT_ACTIVE);
  constexpr DWORD kStates[] = {SERVICE_RUNNING, SERVICE_STOP_PENDING, SERVICE_STOPPED};
  return set_status(to.handle, kStates[static_cast<int>(state)], state == State::kStopping ? seconds : 0, exit_code);
}

}  // namespace pointsman::service
