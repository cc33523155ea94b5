// Loaded before a program (LD_PRELOAD): one of its processes, the first that asks for a large buffer, sleeps before it gets
// it. So one rank has much longer to work than the others, on a machine of any speed.
//   SLOW_BYTES    the least size of this buffer
//   SLOW_SECONDS  how long the process sleeps
//   SLOW_MARKER   a file that is made then; it does not exist before
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

/// Large host arrays are mapped (kernels/base/huge_pages.h).
extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  const char *least = std::getenv("SLOW_BYTES"), *seconds = std::getenv("SLOW_SECONDS"),
             *marker = std::getenv("SLOW_MARKER");
  if (least != nullptr && seconds != nullptr && marker != nullptr && (flags & MAP_ANONYMOUS) != 0 &&
      bytes >= std::strtoull(least, nullptr, 10)) {
    const int made = open(marker, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (made >= 0) {
      close(made);
      std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(seconds)));
    }
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
