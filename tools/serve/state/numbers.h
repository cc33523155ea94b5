// Numbers that never come again, whatever ends this process: generations of values, and vectors.
//
// A file says from where on numbers are free. It is moved on by a thousand before the first of them is given away.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <filesystem>

namespace shardmat::serve {

class Numbers {
 public:
  /// Throws Error(input) for a file that this class did not write.
  explicit Numbers(const std::filesystem::path& file);

  /// From 1 on. Throws Error(resources) if the file cannot be written.
  std::uint64_t next();
  /// No number of this object is below it, and those of earlier ones are.
  std::uint64_t first() const { return first_; }

 private:
  void reserve();

  std::filesystem::path file_;
  std::uint64_t first_ = 1, next_ = 1;
  std::uint64_t reserved_ = 1;  ///< numbers below it may be given away
};

}  // namespace shardmat::serve
