// A file or socket that is opened must not get the number of a standard stream that is closed: messages would be written
// into it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace shardmat::tools {

/// What becomes of a closed standard output: writing to it fails, or what is written is lost.
enum class ClosedOutput { fails, is_lost };

/// Opens /dev/null in place of the standard streams that are closed.
inline void open_standard_streams(ClosedOutput output) {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const bool writes = stream == STDERR_FILENO || (stream == STDOUT_FILENO && output == ClosedOutput::is_lost);
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", writes ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

}  // namespace shardmat::tools
