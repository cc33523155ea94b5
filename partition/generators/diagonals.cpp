// diagonals: a square matrix of a few full diagonals, equally far apart.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/base/parallel.h"
#include "partition/generators/arguments.h"
#include "partition/generators/counter_random.h"
#include "partition/generators/families.h"
#include "partition/generators/generated_source.h"

namespace shardmat {
namespace {

constexpr std::uint64_t kValueStream = 12;
constexpr std::int64_t kGrain = 1024;

class DiagonalsSource final : public GeneratedSource {
 public:
  DiagonalsSource(std::string name, std::int64_t n, std::int64_t count, std::int64_t spacing, std::uint64_t seed)
      : GeneratedSource(std::move(name), n, n), half_(count / 2), spacing_(spacing), value_(seed, kValueStream) {}

 protected:
  void count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const override {
    parallel_ranges(end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) lengths[i] = last(begin + i) - first(begin + i) + 1;
    });
  }

  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const override {
    parallel_ranges(end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) {
        const std::int64_t row = begin + i;
        const CounterRandom value = value_.of(row);
        auto at = static_cast<std::size_t>(part.row_ptr[static_cast<std::size_t>(i)]);
        for (std::int64_t d = first(row); d <= last(row); ++d) {
          part.col_idx[at] = row + d * spacing_;
          part.values[at++] = value.symmetric(d + half_);
        }
      }
    });
  }

 private:
  /// Diagonals of a row, 0 the main one.
  std::int64_t first(std::int64_t row) const { return -std::min(half_, row / spacing_); }
  std::int64_t last(std::int64_t row) const { return std::min(half_, (rows() - 1 - row) / spacing_); }

  std::int64_t half_, spacing_;
  CounterRandom value_;
};

constexpr GeneratorParameter kParameters[] = {
    {"n", "100000", "number of rows and columns"},
    {"count", "5", "number of diagonals, odd; the middle one is the main diagonal"},
    {"spacing", "100", "columns from one diagonal to the next, from 1"},
    {"seed", "1", "seed of the values, uniform in [-1, 1)"},
};

std::unique_ptr<RowSource> make(const GeneratorArguments& given) {
  const Arguments arguments("diagonals", kParameters, given);
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  const std::int64_t count = arguments.integer("count", 1, 1 << 20);
  if (count % 2 == 0) arguments.refuse(fmt::format("count = {} is even; the main diagonal is in the middle", count));
  return std::make_unique<DiagonalsSource>(arguments.specification(), arguments.integer("n", 0, kMost), count,
                                           arguments.integer("spacing", 1, kMost), arguments.seed());
}

}  // namespace

Generator diagonals_generator() { return {"diagonals", "a few full diagonals, equally far apart", kParameters, make}; }

}  // namespace shardmat
