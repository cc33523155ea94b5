// Loaded before a program (LD_PRELOAD), this makes calls of the system slow, so that a program waits on a machine of any
// speed. A large buffer: one of the processes, the first that asks for it, sleeps before it gets it.
//   SLOW_BYTES    the least size of this buffer
//   SLOW_SECONDS  how long the process sleeps
//   SLOW_MARKER   a file that is made then; it does not exist before
// Names of hosts: a process that looks one up sleeps before.
//   SLOW_NAMES    how long, in seconds
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace {

void sleep(const char* seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(seconds))); }

}  // namespace

/// Large host arrays are mapped (kernels/base/huge_pages.h).
extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  const char *least = std::getenv("SLOW_BYTES"), *seconds = std::getenv("SLOW_SECONDS"),
             *marker = std::getenv("SLOW_MARKER");
  if (least != nullptr && seconds != nullptr && marker != nullptr && (flags & MAP_ANONYMOUS) != 0 &&
      bytes >= std::strtoull(least, nullptr, 10)) {
    const int made = open(marker, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (made >= 0) {
      close(made);
      sleep(seconds);
    }
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  const char* const seconds = std::getenv("SLOW_NAMES");
  if (seconds != nullptr && hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) == 0) sleep(seconds);
  static const auto next = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(host, service, hints, found);
}
