#include "addon/linux/subsystems.h"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "addon/async_call.h"
#include "addon/functions.h"

namespace pointsman::addon {

namespace {

struct Range {
  uintptr_t begin;
  uintptr_t end;
};

/// `BEGIN-END PERMISSIONS …` in hexadecimal; nothing when it is no such line.
bool read_range(std::string_view line, Range& range) {
  const char* end = line.data() + line.size();
  Range read{};
  auto [dash, begin_error] = std::from_chars(line.data(), end, read.begin, 16);
  if (begin_error != std::errc() || dash == end || *dash != '-') return false;
  auto [space, end_error] = std::from_chars(dash + 1, end, read.end, 16);
  if (end_error != std::errc() || space == end || *space != ' ') return false;
  // Names of fields begin with digits, too: `Anonymous`.
  range = read;
  return true;
}

/// Mappings of which the process has no page of its own, such as a debugger's breakpoints or relocated data (proc_pid_smaps(5)).
std::vector<Range> mappings_of_files() {
  constexpr std::string_view anonymous = "Anonymous:";
  std::vector<Range> found;
  std::ifstream smaps("/proc/self/smaps");
  Range range{};
  for (std::string line; std::getline(smaps, line);) {
    if (read_range(line, range) || line.compare(0, anonymous.size(), anonymous) != 0) continue;
    if (line.find_first_not_of(' ', anonymous.size()) == line.find("0 kB")) found.push_back(range);
  }
  return found;
}

/// Lets go of the pages of one program or library that nothing writes to. The loader's lock is held: none is unloaded meanwhile.
int release_object(dl_phdr_info* object, size_t, void* data) {
  const auto& mappings = *static_cast<const std::vector<Range>*>(data);
  for (int index = 0; index < object->dlpi_phnum; index++) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[index];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    for (const Range& mapping : mappings) {
      const uintptr_t from = std::max(mapping.begin, begin);
      const uintptr_t to = std::min(mapping.end, begin + segment.p_memsz);
      // One that is locked stays as it is.
      if (from < to && from == mapping.begin) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
    }
  }
  return 0;
}

/// Makes the kernel take the pages of programs and libraries out of this process. A start needs most of them, later work few. They stay in the
/// kernel's cache of files, and come back from there where they are touched (madvise(2), MADV_DONTNEED on a private mapping of a file).
void release_files() {
  std::vector<Range> mappings = mappings_of_files();
  dl_iterate_phdr(release_object, &mappings);
}

class Trim final : public AsyncCall {
 private:
  void execute() override {
#ifdef __GLIBC__
    trimmed_ = malloc_trim(0) == 1;
#endif
    release_files();
  }

  Napi::Value finish(Napi::Env env) override { return Napi::Boolean::New(env, trimmed_); }

  bool trimmed_ = false;
};

Napi::Value memory_trim(const Napi::CallbackInfo& info) { return AsyncCall::start(info.Env(), "memory trim", std::make_unique<Trim>()); }

/// One arena for all threads, and no large buffer kept for later: what a start leaves there stays for the life of the process (mallopt(3)).
void keep_little() {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, 128 * 1024);
#endif
}

}  // namespace

Napi::Object memory_functions(Napi::Env env) {
  keep_little();
  Functions functions(env);
  functions.add<memory_trim>("memoryTrim");
  return functions.object();
}

}  // namespace pointsman::addon
