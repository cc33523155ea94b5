#include "tools/write_text.h"

#include <fmt/format.h>

#include <fstream>

#include "kernels/base/error.h"
#include "partition/atomic_file.h"

namespace shardmat::tools {

void write_text(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  AtomicFile file(path);
  std::ofstream stream(file.temporary(), std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) throw Error(ErrorKind::resources, fmt::format("cannot write {}: is the disk full?", path));
  file.commit();
}

}  // namespace shardmat::tools
