#include "tools/write_json.h"

#include <fmt/format.h>

#include <fstream>

#include "kernels/base/error.h"
#include "partition/atomic_file.h"

namespace shardmat::tools {

void write_json(const std::string& path, const std::string& json) {
  if (path == "-") {
    fmt::print("{}", json);
    return;
  }
  AtomicFile file(path);
  std::ofstream stream(file.temporary(), std::ios::binary);
  stream << json;
  stream.close();
  if (!stream) throw Error(ErrorKind::resources, fmt::format("cannot write {}: is the disk full?", path));
  file.commit();
}

}  // namespace shardmat::tools
