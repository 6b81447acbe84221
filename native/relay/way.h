#pragma once

#include <cstddef>
#include <vector>

#include "base/descriptor.h"

namespace pointsman::relay {

struct Pipe {
  Descriptor out;
  Descriptor in;
};

/// Empty pipes for the next bytes: a direction has one only while it holds bytes that the other side has no room for.
class Pipes {
 public:
  /// Not open: there is none, and errno says why.
  Pipe take();
  void give(Pipe pipe);

 private:
  std::vector<Pipe> empty_;
};

/// One direction of a connection.
class Way {
 public:
  enum class Turn {
    kWaits,      // for the kernel, or it is over
    kGoesOn,     // others first
    kFailed,     // a socket has an error
    kLacksPipe,  // errno says why
  };

  /// Moves what can be moved, for one turn. At the end of what `from` sends, `to` is shut down.
  Turn carry(const Descriptor& from, const Descriptor& to, Pipes& pipes);
  void set_readable() { readable_ = true; }
  void set_writable() { writable_ = true; }
  bool over() const { return over_; }

 private:
  Turn fill(const Descriptor& from, const Descriptor& to, Pipes& pipes);
  Turn empty(const Descriptor& to, Pipes& pipes);

  Pipe pipe_;
  /// Bytes in the pipe.
  std::size_t held_ = 0;
  bool readable_ = false;
  bool writable_ = false;
  bool over_ = false;
};

}  // namespace pointsman::relay
