#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "relay/relay.h"
#include "test/check.h"

namespace {

using namespace pointsman;
using namespace std::chrono_literals;

constexpr int kNoLack = 0;
constexpr std::size_t kMegabyte = 1 << 20;

/// Both ends of a TCP connection over loopback.
struct Link {
  Descriptor near;
  Descriptor far;
};

Link link_up() {
  Link link;
  const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(name);
  auto* const generic = reinterpret_cast<sockaddr*>(&name);
  CHECK_EQUAL(bind(listener.number(), generic, length), 0);
  CHECK_EQUAL(listen(listener.number(), 1), 0);
  CHECK_EQUAL(getsockname(listener.number(), generic, &length), 0);
  link.near.set(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK_EQUAL(connect(link.near.number(), generic, length), 0);
  link.far.set(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
  CHECK(link.far.open());
  return link;
}

/// What a relay reported.
class Ends {
 public:
  void put(const relay::End& end) {
    const std::lock_guard lock(mutex_);
    ends_.push_back(end);
    woken_.notify_all();
  }

  /// The first, which is waited for.
  relay::End first() {
    std::unique_lock lock(mutex_);
    woken_.wait(lock, [this] { return !ends_.empty(); });
    return ends_.front();
  }

  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return ends_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  std::vector<relay::End> ends_;
};

/// A client and a server, with a relay between them.
struct Scene {
  Ends ends;
  std::optional<relay::Relay> relay{std::in_place, [this](const relay::End& end) { ends.put(end); }};
  Descriptor client;
  Descriptor server;
  std::uint64_t id = 0;

  Scene() {
    Link front = link_up();
    Link back = link_up();
    client = std::move(front.near);
    server = std::move(back.near);
    auto added = relay->add(front.far.number(), back.far.number());
    CHECK(added.ok());
    if (added.ok()) id = added.value();
  }
};

void send_all(const Descriptor& to, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = send(to.number(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    CHECK(count > 0);
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

/// All until the end, or the errno with which it ends.
struct Got {
  std::string bytes;
  int error = 0;
};

Got receive_all(const Descriptor& from) {
  Got got;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t count = recv(from.number(), buffer.data(), buffer.size(), 0);
    if (count < 0) got.error = errno;
    if (count <= 0) return got;
    got.bytes.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// Bytes whose order can be seen.
std::string numbered(std::size_t size) {
  std::string bytes(size, ' ');
  std::uint32_t next = 1;
  std::ranges::generate(bytes, [&next] {
    next = next * 1664525 + 1013904223;
    return static_cast<char>(next >> 24);
  });
  return bytes;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Lets the process open no descriptor more, for as long as it lives.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const Descriptor next(dup(STDERR_FILENO));
    const rlimit low{static_cast<rlim_t>(next.number()), before_.rlim_max};
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;
  ~NoMoreDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST(a_relay_carries_bytes_both_ways_and_the_end_of_each_way_by_itself) {
  for (const bool client_is_first : {true, false}) {
    Scene scene;
    const Descriptor& one = client_is_first ? scene.client : scene.server;
    const Descriptor& other = client_is_first ? scene.server : scene.client;
    const std::string request = numbered(3 * kMegabyte + 1);
    const std::string answer = numbered(2 * kMegabyte + 3);
    std::thread sender([&] {
      send_all(one, request);
      shutdown(one.number(), SHUT_WR);
    });
    CHECK(receive_all(other).bytes == request);
    sender.join();
    CHECK_EQUAL(scene.ends.count(), 0U);
    std::thread answerer([&] {
      send_all(other, answer);
      shutdown(other.number(), SHUT_WR);
    });
    const Got got = receive_all(one);
    answerer.join();
    CHECK(got.bytes == answer);
    CHECK_EQUAL(got.error, 0);
    const relay::End end = scene.ends.first();
    CHECK_EQUAL(end.id, scene.id);
    CHECK_EQUAL(end.lack, kNoLack);
  }
}

TEST(a_relay_keeps_pairs_apart) {
  std::vector<Scene> scenes(40);
  for (std::size_t at = 0; at < scenes.size(); ++at) send_all(scenes[at].client, std::to_string(at));
  for (std::size_t at = 0; at < scenes.size(); ++at) {
    shutdown(scenes[at].client.number(), SHUT_WR);
    CHECK_EQUAL(receive_all(scenes[at].server).bytes, std::to_string(at));
  }
}

TEST(a_peer_that_resets_has_the_other_reset) {
  for (const bool client_is_first : {true, false}) {
    Scene scene;
    Descriptor& one = client_is_first ? scene.client : scene.server;
    const Descriptor& other = client_is_first ? scene.server : scene.client;
    const linger none{1, 0};
    setsockopt(one.number(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    one.close();
    CHECK_EQUAL(receive_all(other).error, ECONNRESET);
    CHECK_EQUAL(scene.ends.first().lack, kNoLack);
  }
}

TEST(bytes_that_come_before_a_reset_arrive) {
  for (int round = 0; round < 50; ++round) {
    Scene scene;
    send_all(scene.client, "a question");
    std::array<char, 1> first{};
    CHECK_EQUAL(recv(scene.server.number(), first.data(), first.size(), 0), 1);
    send_all(scene.server, "an answer");
    // With bytes unread the kernel resets.
    scene.server.close();
    const Got got = receive_all(scene.client);
    CHECK_EQUAL(got.bytes, "an answer");
    CHECK_EQUAL(got.error, ECONNRESET);
  }
}

TEST(a_peer_that_is_gone_while_bytes_come_has_the_other_reset) {
  Scene scene;
  scene.client.close();
  const std::string bytes = numbered(kMegabyte);
  ssize_t sent = 0;
  while (sent >= 0) sent = send(scene.server.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  CHECK(errno == ECONNRESET || errno == EPIPE);
  CHECK_EQUAL(scene.ends.first().lack, kNoLack);
}

TEST(a_reader_that_is_slow_holds_the_sender_back_and_gets_all) {
  Scene scene;
  const std::string bytes = numbered(64 * kMegabyte);
  std::size_t sent = 0;
  // Until there is no room on the way: what the sockets and a pipe hold, by the kernel's limits a part of this.
  timeval patience{0, 300'000};
  setsockopt(scene.client.number(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  for (ssize_t count = 0; count >= 0 && sent < bytes.size(); sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0)))
    count = send(scene.client.number(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
  CHECK(sent < bytes.size() / 2);
  patience = {};
  setsockopt(scene.client.number(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  std::thread sender([&] {
    send_all(scene.client, bytes.substr(sent));
    shutdown(scene.client.number(), SHUT_WR);
  });
  CHECK(receive_all(scene.server).bytes == bytes);
  sender.join();
}

TEST(a_pair_that_is_ended_amid_its_bytes_has_both_reset) {
  Scene scene;
  send_all(scene.client, "x");
  std::array<char, 1> first{};
  CHECK_EQUAL(recv(scene.server.number(), first.data(), first.size(), 0), 1);
  scene.relay->end(scene.id);
  scene.relay->end(scene.id);
  CHECK_EQUAL(receive_all(scene.client).error, ECONNRESET);
  CHECK_EQUAL(receive_all(scene.server).error, ECONNRESET);
  CHECK_EQUAL(scene.ends.first().lack, kNoLack);
  scene.relay.reset();
  CHECK_EQUAL(scene.ends.count(), 1U);
}

TEST(a_relay_that_goes_resets_what_is_left) {
  Scene scene;
  scene.relay.reset();
  CHECK_EQUAL(receive_all(scene.client).error, ECONNRESET);
  CHECK_EQUAL(receive_all(scene.server).error, ECONNRESET);
}

TEST(a_pair_without_a_pipe_is_reset_and_reported) {
  Scene scene;
  {
    const NoMoreDescriptors none;
    send_all(scene.client, "x");
    CHECK_EQUAL(scene.ends.first().lack, EMFILE);
    CHECK_EQUAL(receive_all(scene.client).error, ECONNRESET);
    CHECK_EQUAL(receive_all(scene.server).error, ECONNRESET);
  }
  Link front = link_up();
  Link back = link_up();
  {
    const NoMoreDescriptors none;
    const auto added = scene.relay->add(front.far.number(), back.far.number());
    CHECK(!added.ok());
  }
  CHECK(scene.relay->add(front.far.number(), back.far.number()).ok());
  send_all(front.near, "y");
  shutdown(front.near.number(), SHUT_WR);
  CHECK_EQUAL(receive_all(back.near).bytes, "y");
}

TEST(a_relay_has_no_descriptor_and_no_thread_a_while_after_its_last_pair) {
  const std::size_t before = open_descriptors();
  Scene scene;
  const auto finish = [&scene] {
    for (const Descriptor* peer : {&scene.client, &scene.server}) shutdown(peer->number(), SHUT_WR);
    for (Descriptor* peer : {&scene.client, &scene.server}) {
      CHECK_EQUAL(receive_all(*peer).error, 0);
      peer->close();
    }
  };
  finish();
  while (open_descriptors() > before) std::this_thread::sleep_for(1ms);
  // A later pair starts a thread anew.
  Link front = link_up();
  Link back = link_up();
  CHECK(scene.relay->add(front.far.number(), back.far.number()).ok());
  send_all(front.near, "again");
  shutdown(front.near.number(), SHUT_WR);
  CHECK_EQUAL(receive_all(back.near).bytes, "again");
}
