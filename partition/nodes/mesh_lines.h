// Lines of mesh files. Internal to nodes/.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "partition/readers/text_numbers.h"
#include "partition/readers/text_source.h"

namespace shardmat {

class MeshLines {
 public:
  explicit MeshLines(const std::filesystem::path& path) : source_(TextSource::open(path, {})), cursor_(*source_) {
    ReadLimits{}.require_memory(4 * source_->most_text_bytes(), path);  // a line with a node has 10 bytes or more
  }

  /// Goes to the next line; false at the end.
  bool next() {
    line_ = cursor_.next();
    return !line_.empty();
  }
  /// The line, which ends with '\n'.
  std::string_view line() const { return line_; }
  bool blank() const { return *matrix_market::skip_blanks(line_.data()) == '\n'; }

  /// Calls parse(first character of the line); a LineFault becomes the error of this line.
  template <class F>
  auto parse(F&& parse) const {
    try {
      return parse(line_.data());
    } catch (const LineFault& fault) {
      fail(fault.what);
    }
  }
  [[noreturn]] void fail(const std::string& what) const { cursor_.fail(what, "coordinates"); }

 private:
  std::unique_ptr<TextSource> source_;
  LineCursor cursor_;
  std::string_view line_;
};

constexpr std::int64_t kMostMeshNumber = std::int64_t{1} << 58;

}  // namespace shardmat
