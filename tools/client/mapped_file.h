// The bytes of a file that a client sends.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardmat::tools {

class MappedFile {
 public:
  /// Throws Error(input) for what is no regular file with bytes.
  explicit MappedFile(const std::string& name);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view text() const { return {static_cast<const char*>(map_), bytes_}; }

 private:
  void* map_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace shardmat::tools
