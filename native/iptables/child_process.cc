#include "iptables/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/descriptor.h"

namespace pointsman::iptables {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxWords = std::size_t{64} * 1024;
/// How often a silent program is looked at: whether it has ended although something holds its outputs open.
constexpr int kLookMilliseconds = 100;
/// How often it is asked whether a program has to give way.
constexpr int kAskMilliseconds = 10;

struct Channel {
  Descriptor ours;
  Descriptor theirs;
};

bool open_pipe(Channel& channel) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  channel.ours.set(ends[0]);
  channel.theirs.set(ends[1]);
  return fcntl(channel.ours.number(), F_SETFL, O_NONBLOCK) == 0;
}

/// A socket, because writing to one whose reader is gone need not raise SIGPIPE.
bool open_socket(Channel& channel) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
  channel.ours.set(ends[0]);
  channel.theirs.set(ends[1]);
  return fcntl(channel.ours.number(), F_SETFL, O_NONBLOCK) == 0;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// Answers errno; 0 with `pid` set.
int spawn(const ProcessEnvironment& environment, const std::string& path, std::vector<std::string> arguments,
          const std::array<int, 3>& streams, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (int number = 0; number < 3; ++number) {
    posix_spawn_file_actions_adddup2(&actions, streams[static_cast<std::size_t>(number)], number);
  }
  // Node ignores SIGPIPE, and its threads block signals; a program inherits both.
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  // A group of its own: what it starts can be ended with it, and a terminal's signals to us do not reach it.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  arguments.insert(arguments.begin(), path);
  std::vector<std::string> variables = environment.variables;
  const int failure = posix_spawn(&pid, path.c_str(), &actions, &attributes, pointers(arguments).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

/// Milliseconds until `end` for poll, at least 0.
int remaining(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000));
}

void write_some(Descriptor& to, std::string_view& input) {
  const ssize_t sent = send(to.number(), input.data(), input.size(), MSG_NOSIGNAL);
  if (sent >= 0) {
    input.remove_prefix(static_cast<std::size_t>(sent));
  } else if (errno != EAGAIN && errno != EINTR) {
    // The program reads no more; its exit code shows why.
    input = {};
  }
  if (input.empty()) to.close();
}

void read_some(Descriptor& from, const std::function<void(std::string_view)>& take) {
  std::array<char, 65536> buffer;
  const ssize_t length = read(from.number(), buffer.data(), buffer.size());
  if (length > 0) {
    take(std::string_view(buffer.data(), static_cast<std::size_t>(length)));
  } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
    from.close();
  }
}

/// Whether the program has ended; it can still be waited for.
bool has_ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/// Exchanges until the program closed its outputs, or ended and left nothing in them; false at the end of its time, or if it gives way.
bool exchange(pid_t pid, Descriptor& in, Descriptor& out, Descriptor& error, std::string_view input, Clock::time_point end,
              const std::function<void(std::string_view)>& output, std::string& words, const std::function<bool()>& gives_way) {
  const int longest = gives_way ? kAskMilliseconds : kLookMilliseconds;
  if (input.empty()) in.close();
  const auto keep_words = [&](std::string_view piece) { words += piece.substr(0, kMaxWords - std::min(words.size(), kMaxWords)); };
  bool ended = false;
  while (out.open() || error.open()) {
    // poll passes over negative descriptors.
    std::array<pollfd, 3> polled{{{in.number(), POLLOUT, 0}, {out.number(), POLLIN, 0}, {error.number(), POLLIN, 0}}};
    const int ready = poll(polled.data(), polled.size(), ended ? 0 : std::min(remaining(end), longest));
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0) {
      // What it started may hold its outputs open for ever; what it wrote itself is in them by now.
      if (ended) return true;
      ended = has_ended(pid);
    }
    if (ready > 0) {
      if (polled[0].revents != 0) write_some(in, input);
      if (polled[1].revents != 0) read_some(out, output);
      if (polled[2].revents != 0) read_some(error, keep_words);
    }
    if (Clock::now() >= end || (gives_way && gives_way())) return false;
  }
  return true;
}

std::chrono::microseconds duration(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

/// Takes the program's end; kills its group first when its time is over.
void reap(pid_t pid, bool in_time, Clock::time_point end, Exit& result) {
  int status = 0;
  rusage usage{};
  for (;;) {
    if (!in_time || Clock::now() >= end) {
      result.timed_out = true;
      kill(-pid, SIGKILL);
    }
    const pid_t ended = wait4(pid, &status, result.timed_out ? 0 : WNOHANG, &usage);
    if (ended == pid) break;
    if (ended < 0 && errno != EINTR) {
      result.failure = errno;
      return;
    }
    // It closed its outputs, so it is about to end.
    if (ended == 0) poll(nullptr, 0, 1);
  }
  result.processor = duration(usage.ru_utime) + duration(usage.ru_stime);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
}

}  // namespace

ProcessEnvironment ProcessEnvironment::current() {
  ProcessEnvironment environment;
  std::string folders;
  if (const char* inherited = std::getenv("PATH")) folders = inherited;
  folders += ":/usr/local/sbin:/usr/sbin:/sbin";
  std::string path;
  for (std::size_t start = 0; start <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', start), folders.size());
    // Others would be meant from wherever this process happens to be.
    if (folders[start] == '/') {
      environment.path.push_back(folders.substr(start, end - start));
      path += (path.empty() ? "" : ":") + environment.path.back();
    }
    start = end + 1;
  }
  environment.variables = {"PATH=" + path, "LC_ALL=C"};
  for (const char* name : {"XTABLES_LOCKFILE", "XTABLES_LIBDIR"}) {
    if (const char* value = std::getenv(name)) environment.variables.push_back(std::string(name) + "=" + value);
  }
  return environment;
}

std::optional<std::string> ProcessEnvironment::find(const std::string& program) const {
  for (const std::string& folder : path) {
    std::string file = folder + "/" + program;
    struct stat found {};
    if (stat(file.c_str(), &found) == 0 && S_ISREG(found.st_mode) && access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

Exit run_program(const ProcessEnvironment& environment, const std::string& path, const std::vector<std::string>& arguments,
                 std::string_view input, std::chrono::milliseconds limit, const std::function<void(std::string_view)>& output,
                 const std::function<bool()>& gives_way) {
  Exit result;
  Channel in;
  Channel out;
  Channel error;
  if (!open_socket(in) || !open_pipe(out) || !open_pipe(error)) {
    result.failure = errno;
    return result;
  }
  const Clock::time_point end = Clock::now() + limit;
  pid_t pid = 0;
  result.failure = spawn(environment, path, arguments, {in.theirs.number(), out.theirs.number(), error.theirs.number()}, pid);
  if (result.failure != 0) return result;
  in.theirs.close();
  out.theirs.close();
  error.theirs.close();
  const bool in_time = exchange(pid, in.ours, out.ours, error.ours, input, end, output, result.words, gives_way);
  reap(pid, in_time, end, result);
  return result;
}

}  // namespace pointsman::iptables
