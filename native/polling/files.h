#pragma once

#include <optional>
#include <string>
#include <vector>

#include "polling/poller.h"

namespace pointsman::polling {

/// A file of the kernel's, and what was read from it.
struct SeenFile {
  std::string path;
  /// Without white space at its end; none: it could not be read.
  std::optional<std::string> text;
};

/// Files of /proc/sys and /sys: the kernel tells nobody when one is written (sysctl(5)). They are changed when one has another text than was seen, or can be
/// written and could not when this was made.
class Files final : public Subject {
 public:
  explicit Files(std::vector<SeenFile> seen);
  bool is_changed() override;

 private:
  struct File {
    SeenFile seen;
    bool writable;
  };

  std::vector<File> files_;
};

}  // namespace pointsman::polling
