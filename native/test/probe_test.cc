#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>

#include "probe/space.h"
#include "test/check.h"

namespace {

using namespace pointsman;

/// No thread gets a stack while this lasts.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 60);
    set_ = pthread_setattr_default_np(&huge) == 0;
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

  bool set() const { return set_; }

 private:
  pthread_attr_t before_{};
  bool set_ = false;
};

TEST(a_thread_that_cannot_be_made_is_an_error) {
  const int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  bool worked = false;
  {
    const NoThreads none;
    CHECK(none.set());
    const auto ran = probe::run_inside(own, [&]() -> netlink::Status {
      worked = true;
      return netlink::Done{};
    });
    CHECK(!ran.ok());
    if (!ran.ok()) CHECK(ran.error().code == EAGAIN || ran.error().code == ENOMEM);
    CHECK(!probe::open_space("pm-test", {}, std::nullopt).ok());
  }
  CHECK(!worked);
  close(own);
}

}  // namespace
