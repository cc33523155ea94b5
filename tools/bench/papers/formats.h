// Paper 2, course text on parallel patterns: which format for which class of matrix, by the text's guide, by ours, and by
// measuring.
#pragma once

#include <span>
#include <string_view>

#include "tools/bench/papers/paper.h"

namespace shardmat::tools {

class Formats final : public Paper {
 public:
  Formats();
  void measure(PaperBench& bench, Trial& trial, const Subject& subject) override;
  /// paper_2.
  Tables tables() const override { return {{"paper_2", table_}}; }

 private:
  ResultTable table_;
};

/// The text's classes, and a stencil, which it does not have.
std::span<const MatrixClass> course_classes();

}  // namespace shardmat::tools
