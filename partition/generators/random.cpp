// random: the same number of entries in every row, in distinct columns drawn uniformly; or a lower triangle
// whose rows grow to that number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/base/parallel.h"
#include "partition/generators/arguments.h"
#include "partition/generators/counter_random.h"
#include "partition/generators/draw_distinct.h"
#include "partition/generators/families.h"
#include "partition/generators/generated_source.h"

namespace shardmat {
namespace {

constexpr std::uint64_t kPatternStream = 9, kValueStream = 10;
constexpr std::int64_t kGrain = 256;

class RandomSource final : public GeneratedSource {
 public:
  RandomSource(std::string name, std::int64_t rows, std::int64_t cols, std::int64_t row_nnz, bool triangular,
               std::uint64_t seed)
      : GeneratedSource(std::move(name), rows, cols),
        row_nnz_(row_nnz),
        triangular_(triangular),
        pattern_(seed, kPatternStream),
        value_(seed, kValueStream) {}

 protected:
  void count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const override {
    for (std::int64_t row = begin; row < end; ++row) lengths[row - begin] = length(row);
  }

  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const override {
    parallel_ranges(end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
      std::vector<std::int64_t> drawn;
      for (std::int64_t i = from; i < to; ++i) {
        const std::int64_t first = part.row_ptr[static_cast<std::size_t>(i)], count = length(begin + i);
        const std::int64_t below = triangular_ ? begin + i + 1 : cols();
        draw_distinct(pattern_.of(begin + i), count, below, part.col_idx.data() + first, drawn);
        const CounterRandom value = value_.of(begin + i);
        for (std::int64_t k = 0; k < count; ++k) part.values[static_cast<std::size_t>(first + k)] = value.symmetric(k);
      }
    });
  }

 private:
  std::int64_t length(std::int64_t row) const {
    if (!triangular_) return row_nnz_;
    const double share = static_cast<double>(row + 1) / static_cast<double>(rows());
    const double grown = std::ceil(share * static_cast<double>(row_nnz_));
    return std::min({row + 1, row_nnz_, static_cast<std::int64_t>(grown)});
  }

  std::int64_t row_nnz_;
  bool triangular_;
  CounterRandom pattern_, value_;
};

constexpr GeneratorParameter kParameters[] = {
    {"n", "100000", "number of rows"},
    {"cols", "n", "number of columns"},
    {"row_nnz", "16", "entries in each row, up to the columns"},
    {"triangular", "off", "lower triangle: rows grow from 1 entry to row_nnz"},
    {"seed", "1", "seed of pattern and values; values are uniform in [-1, 1)"},
};

std::unique_ptr<RowSource> make(const GeneratorArguments& given) {
  const Arguments arguments("random", kParameters, given);
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  const std::int64_t rows = arguments.integer("n", 0, kMost);
  const std::int64_t cols = arguments.given("cols") ? arguments.integer("cols", 0, kMost) : rows;
  const std::int64_t row_nnz = arguments.integer("row_nnz", 0, kMost);
  if (row_nnz > cols) arguments.refuse(fmt::format("row_nnz = {} is more than the {} columns", row_nnz, cols));
  const bool triangular = arguments.flag("triangular");
  if (triangular && rows != cols) arguments.refuse("a triangle is square; leave cols out");
  return std::make_unique<RandomSource>(arguments.specification(), rows, cols, row_nnz, triangular, arguments.seed());
}

}  // namespace

Generator random_generator() {
  return {"random", "uniformly random columns, the same number in each row", kParameters, make};
}

}  // namespace shardmat
