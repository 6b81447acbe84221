#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace pointsman::sysctl {

/// A file of the kernel's, and what was read from it.
struct Seen {
  std::string path;
  /// Without white space at its end; none: it could not be read.
  std::optional<std::string> text;
};

/// Some file is not as it was seen.
struct Change {
  bool found = false;

  bool any() const { return found; }
  void merge(const Change& later) { found = found || later.found; }
};

/// Looks at some files of /proc/sys and /sys again and again, as the kernel tells nobody when one is written (sysctl(5)). A thread that only does this costs
/// a tenth of what it costs to wake JavaScript.
class Watch {
 public:
  Watch(std::vector<Seen> seen, std::chrono::milliseconds period);

  /// Blocks until a file has another text than was seen, or can be written where it could not when the watch was made, or the other way round. Answers that
  /// once; nothing after `stop`.
  std::optional<Change> wait();
  /// From any thread.
  void stop();

 private:
  struct File {
    Seen seen;
    bool writable;
  };

  bool differs() const;

  const std::chrono::milliseconds period_;
  std::vector<File> files_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool told_ = false;
  bool stopped_ = false;
};

}  // namespace pointsman::sysctl
