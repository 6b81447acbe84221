#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "sysctl/watch.h"
#include "test/check.h"

namespace {

using namespace pointsman;
using namespace std::chrono_literals;

/// Such that it is found at once, or never by a test.
constexpr auto kShort = 1ms;
constexpr auto kLong = std::chrono::hours(1);

/// A file of the test's own, which goes with it.
class SysctlFile {
 public:
  explicit SysctlFile(const std::string& text) : path_("/tmp/pointsman-sysctl-" + std::to_string(::getpid())) { write(text); }
  SysctlFile(const SysctlFile&) = delete;
  SysctlFile& operator=(const SysctlFile&) = delete;
  ~SysctlFile() { ::unlink(path_.c_str()); }

  void write(const std::string& text) const { std::ofstream(path_) << text; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST(a_sysctl_that_differs_is_reported_once) {
  const SysctlFile file("60\n");
  sysctl::Watch watch({{file.path(), "60"}}, kShort);
  file.write("61\n");
  CHECK(watch.wait().has_value());
  std::thread stopper([&watch] { watch.stop(); });
  CHECK(!watch.wait().has_value());
  stopper.join();
}

TEST(a_sysctl_is_reported_that_comes_or_goes) {
  const SysctlFile file("60\n");
  sysctl::Watch came({{file.path(), std::nullopt}}, kShort);
  CHECK(came.wait().has_value());
  sysctl::Watch gone({{"/nonexistent/sysctl", "60"}}, kShort);
  CHECK(gone.wait().has_value());
}

TEST(sysctls_that_are_as_seen_are_not_reported) {
  const SysctlFile file("32768\t60999\n");
  sysctl::Watch watch({{file.path(), "32768\t60999"}, {"/nonexistent/sysctl", std::nullopt}}, kShort);
  std::thread stopper([&watch] {
    std::this_thread::sleep_for(20 * kShort);
    watch.stop();
  });
  CHECK(!watch.wait().has_value());
  stopper.join();
}

TEST(a_watch_of_sysctls_stops_at_once) {
  const SysctlFile file("60\n");
  sysctl::Watch watch({{file.path(), "60"}}, kLong);
  std::thread stopper([&watch] { watch.stop(); });
  CHECK(!watch.wait().has_value());
  stopper.join();
}
