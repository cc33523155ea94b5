// Loaded before a program (LD_PRELOAD): one of its processes, the first that asks for a large buffer, sleeps before it gets
// it. So one rank has much longer to work than the others, on a machine of any speed.
//   SLOW_BYTES    the least size of this buffer
//   SLOW_SECONDS  how long the process sleeps
//   SLOW_MARKER   a file that is made then; it does not exist before
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  using Function = void* (*)(std::size_t, std::size_t);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "aligned_alloc"));
  const char *least = std::getenv("SLOW_BYTES"), *seconds = std::getenv("SLOW_SECONDS"),
             *marker = std::getenv("SLOW_MARKER");
  if (least != nullptr && seconds != nullptr && marker != nullptr && bytes >= std::strtoull(least, nullptr, 10)) {
    const int made = open(marker, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (made >= 0) {
      close(made);
      std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(seconds)));
    }
  }
  return real(alignment, bytes);
}
