// Loaded into the kernel for user mode, which up to Linux 6.12 saves and restores 2,696 bytes of a process' extended registers. A processor with AMX has
// more, and ptrace(2) takes all of them or none (EFAULT). What the kernel leaves out is restored as it is: nothing in the machine uses it.
#include <dlfcn.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>

namespace {

// Beyond the size of all registers that processors have so far: 11,008 bytes.
constexpr std::size_t MOST_BYTES = 16384;

// Stacks of the kernel's processes are smaller. It has one processor, and nothing that interrupts this calls it again.
std::array<std::byte, MOST_BYTES> registers;

using Ptrace = long (*)(int, int, void*, void*);

}  // namespace

extern "C" long ptrace(enum __ptrace_request request, ...) noexcept {
  static const Ptrace next = reinterpret_cast<Ptrace>(dlsym(RTLD_NEXT, "ptrace"));
  va_list arguments;
  va_start(arguments, request);
  const int pid = va_arg(arguments, int);
  void* const address = va_arg(arguments, void*);
  void* const data = va_arg(arguments, void*);
  va_end(arguments);
  if (request != PTRACE_SETREGSET || reinterpret_cast<std::size_t>(address) != NT_X86_XSTATE) return next(request, pid, address, data);
  iovec all{registers.data(), registers.size()};
  if (next(PTRACE_GETREGSET, pid, address, &all) != 0) return -1;
  const auto* const saved = static_cast<iovec*>(data);
  const auto* const bytes = static_cast<const std::byte*>(saved->iov_base);
  std::copy_n(bytes, std::min(saved->iov_len, all.iov_len), registers.begin());
  return next(request, pid, address, &all);
}
