#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "polling/files.h"
#include "polling/poller.h"
#include "test/check.h"

namespace {

using namespace pointsman;
using namespace std::chrono_literals;

/// Such that it is looked at soon, or never by a test.
constexpr auto kShort = 1ms;
constexpr auto kLong = std::chrono::hours(1);

/// Changes when it is told to, and knows how often it was looked at, and when last.
class Told final : public polling::Subject {
 public:
  struct State {
    std::atomic<bool> changed = false;
    std::atomic<int> looks = 0;
    std::atomic<int> told = 0;
    std::atomic<polling::Poller::Clock::time_point> last;
  };
  explicit Told(State& state) : state_(state) {}

  bool is_changed() override {
    state_.last = polling::Poller::Clock::now();
    ++state_.looks;
    return state_.changed;
  }

 private:
  State& state_;
};

void until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::sleep_for(kShort);
}

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

std::uint64_t add(polling::Poller& poller, Told::State& state, std::chrono::milliseconds period) {
  return poller.add(std::make_unique<Told>(state), period, [&state] { ++state.told; });
}

}  // namespace

TEST(a_polled_subject_is_reported_once_when_it_changes) {
  Told::State state, other;
  polling::Poller poller;
  add(poller, state, kShort);
  add(poller, other, kShort);
  until([&] { return state.looks > 2; });
  CHECK(state.told == 0);
  state.changed = true;
  until([&] { return state.told > 0; });
  const int looks = other.looks;
  until([&] { return other.looks > looks + 2; });
  CHECK(state.told == 1);
  CHECK(other.told == 0);
}

TEST(a_polled_subject_that_was_removed_is_not_looked_at) {
  Told::State state, other;
  polling::Poller poller;
  const std::uint64_t id = add(poller, state, kShort);
  add(poller, other, kShort);
  until([&] { return state.looks > 0; });
  poller.remove(id);
  poller.remove(id);
  const int looks = state.looks;
  const int others = other.looks;
  until([&] { return other.looks > others + 2; });
  CHECK(state.looks == looks);
}

TEST(a_poller_does_not_wait_for_a_later_subject) {
  Told::State late, soon;
  polling::Poller poller;
  add(poller, late, kLong);
  add(poller, soon, kShort);
  until([&] { return soon.looks > 2; });
  CHECK(late.looks == 0);
}

TEST(subjects_of_one_period_are_looked_at_together) {
  constexpr auto kPeriod = 40ms;
  Told::State first, second;
  polling::Poller poller;
  add(poller, first, kPeriod);
  std::this_thread::sleep_for(kPeriod / 2);
  add(poller, second, kPeriod);
  bool together = false;
  // The thread may lose its core between two looks, but not always.
  for (int pass = 0; pass < 20 && !together; ++pass) {
    const int looks = second.looks;
    until([&] { return second.looks > looks; });
    const auto apart = second.last.load() - first.last.load();
    together = apart < kPeriod / 4;
  }
  CHECK(together);
}

TEST(files_are_changed_when_one_has_another_text) {
  const SysctlFile file("60\n");
  polling::Files files({{"/nonexistent/sysctl", std::nullopt}, {file.path(), "60"}});
  CHECK(!files.is_changed());
  file.write("61\n");
  CHECK(files.is_changed());
  file.write("60 \n");
  CHECK(!files.is_changed());
}

TEST(files_are_changed_when_one_comes_or_goes) {
  const SysctlFile file("32768\t60999\n");
  const auto is_changed = [](const polling::SeenFile& seen) { return polling::Files(std::vector{seen}).is_changed(); };
  CHECK(!is_changed({file.path(), "32768\t60999"}));
  CHECK(is_changed({file.path(), std::nullopt}));
  CHECK(is_changed({"/nonexistent/sysctl", "60"}));
}
