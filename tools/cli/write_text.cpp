#include "tools/cli/write_text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "partition/files/atomic_file.h"
#include "partition/files/output_file.h"

namespace shardmat::tools {

void write_text(const std::string& path, const std::string& text) {
  if (path == "-") {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!written) fail_write("standard output", std::strerror(errno));
    return;
  }
  AtomicFile file(path);
  OutputFile out(file);
  out.append(text);
  out.close();
  file.commit();
}

}  // namespace shardmat::tools
