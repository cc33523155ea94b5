// The error of a rank that lacks memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat {

class MemoryError final : public Error {
 public:
  MemoryError(const std::string& message, std::int64_t missing_bytes, std::string setting = {})
      : Error(ErrorKind::resources, message, std::move(setting)), missing_bytes_(missing_bytes) {}
  /// How much more memory the failed step needs than there is.
  std::int64_t missing_bytes() const { return missing_bytes_; }

 private:
  std::int64_t missing_bytes_;
};

}  // namespace shardmat
