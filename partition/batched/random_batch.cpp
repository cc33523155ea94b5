// batch: matrices whose size and number of entries in a row are drawn for each of them, as in Nagasaka, Nukada, Kojima,
// Matsuoka: Batched Sparse Matrix Multiplication for Accelerating Graph Convolutional Networks, 2019; the columns of a row
// are distinct and uniformly random.
#include <algorithm>
#include <limits>

#include "partition/batched/batch_list.h"
#include "partition/batched/generated_batch.h"
#include "partition/generators/arguments.h"
#include "partition/generators/counter_random.h"
#include "partition/generators/draw_distinct.h"

namespace shardmat {
namespace {

constexpr std::uint64_t kSizeStream = 13, kPatternStream = 14, kValueStream = 15;

constexpr GeneratorParameter kParameters[] = {
    {"count", "100", "number of matrices"},
    {"dim", "32-256", "rows of each matrix: one number, or a range to draw from"},
    {"cols", "dim", "columns of each matrix, given like dim (default: square matrices)"},
    {"row_nnz", "1-5", "entries in each row of a matrix, given like dim; at most all columns"},
    {"seed", "1", "seed of sizes, pattern and values; values are uniform in [-1, 1)"},
};

using Range = std::pair<std::int64_t, std::int64_t>;

class RandomBatch final : public GeneratedBatch {
 public:
  explicit RandomBatch(const Arguments& arguments)
      : GeneratedBatch(arguments.specification()),
        rows_(arguments.range("dim", 0, kMost)),
        cols_(arguments.given("cols") ? arguments.range("cols", 0, kMost) : Range{0, 0}),
        row_nnz_(arguments.range("row_nnz", 0, kMost)),
        square_(!arguments.given("cols")),
        size_(arguments.seed(), kSizeStream),
        pattern_(arguments.seed(), kPatternStream),
        value_(arguments.seed(), kValueStream) {
    const std::int64_t count = arguments.integer("count", 0, std::int64_t{1} << 30);
    const double entries = static_cast<double>(count) * static_cast<double>(rows_.second);
    if (entries * static_cast<double>(std::max(cols_.second, row_nnz_.second) + 1) > 0x1p60)
      arguments.refuse("so many matrices of this size could have more than 2^60 entries");
    count_up(count);
  }

 private:
  static constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

  static std::int64_t draw(const Range& range, const CounterRandom& random, std::int64_t index) {
    return range.first + random.below(range.second - range.first + 1, index);
  }

  Shape shape(std::int64_t matrix) const override {
    const CounterRandom random = size_.of(matrix);
    const std::int64_t rows = draw(rows_, random, 0), cols = square_ ? rows : draw(cols_, random, 1);
    return {rows, cols, rows * std::min(cols, draw(row_nnz_, random, 2))};
  }

  void fill(std::int64_t matrix, const Shape& shape, const Target& target) const override {
    const std::int64_t row_nnz = shape.rows == 0 ? 0 : shape.nnz / shape.rows;
    const CounterRandom pattern = pattern_.of(matrix), value = value_.of(matrix);
    std::vector<std::int64_t> drawn;
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      draw_distinct(pattern.of(row), row_nnz, shape.cols, target.col_idx + row * row_nnz, drawn);
      target.row_ends[row] = (row + 1) * row_nnz;
    }
    for (std::int64_t k = 0; k < shape.nnz; ++k) target.values[k] = value.symmetric(k);
  }

  Range rows_, cols_, row_nnz_;
  bool square_;
  CounterRandom size_, pattern_, value_;
};

}  // namespace

BatchGenerator random_batch_generator() {
  return {"batch", "matrices of random sizes with uniformly random columns", kParameters,
          [](const GeneratorArguments& given) -> std::unique_ptr<BatchSource> {
            return std::make_unique<RandomBatch>(Arguments("batch", kParameters, given));
          }};
}

}  // namespace shardmat
