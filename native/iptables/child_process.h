#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pointsman::iptables {

/// What a program is started with; copied on the JS thread, since the environment may change under another.
struct ProcessEnvironment {
  /// Folders to look for programs in, in order.
  std::vector<std::string> path;
  /// `NAME=value`.
  std::vector<std::string> variables;

  /// The absolute folders of PATH and the usual ones of administrators' programs; XTABLES_LOCKFILE and XTABLES_LIBDIR where set. Messages in English.
  /// Nothing else of our environment goes on, LD_PRELOAD and the like neither.
  static ProcessEnvironment current();
  /// The first executable file of that name.
  std::optional<std::string> find(const std::string& program) const;
};

struct Exit {
  /// The exit code; null when a signal ended the program, as it does at the end of its time.
  std::optional<int> code;
  bool timed_out = false;
  /// Processor time of the program and of what it started and waited for.
  std::chrono::microseconds processor{0};
  /// errno of a failure to start or to wait; 0 for none.
  int failure = 0;
  /// The first 64 KiB of standard error.
  std::string words;
};

/// Runs a program without a shell and waits for it: feeds its standard input while it reads the outputs, and kills it after `limit`, with all that it
/// started and that stayed in its process group. Outputs that outlive the program, as something it started holds them, are not waited for.
///
/// A program does not end because this process does, however that ends. It discards incomplete input, which ends without a COMMIT. It should
/// apply complete input to the end, table by table, rather than be cut off between two tables.
/// @param output takes pieces of standard output.
/// @param gives_way asked every 10 ms whether to kill it now, as after `limit`.
Exit run_program(const ProcessEnvironment& environment, const std::string& path, const std::vector<std::string>& arguments,
                 std::string_view input, std::chrono::milliseconds limit, const std::function<void(std::string_view)>& output,
                 const std::function<bool()>& gives_way = {});

}  // namespace pointsman::iptables
