// banded: a square matrix whose entries lie within a band around the diagonal, each there with a given
// probability.
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

constexpr std::uint64_t kPatternStream = 7, kValueStream = 8;
constexpr std::int64_t kGrain = 256;

class BandedSource final : public GeneratedSource {
 public:
  BandedSource(std::string name, std::int64_t n, std::int64_t bandwidth, double density, std::uint64_t seed)
      : GeneratedSource(std::move(name), n, n),
        bandwidth_(bandwidth),
        density_(density),
        pattern_(seed, kPatternStream),
        value_(seed, kValueStream) {}

 protected:
  void count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const override {
    parallel_ranges(end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) {
        lengths[i] = 0;
        if (density_ == 1) lengths[i] = last(begin + i) - first(begin + i) + 1;
        else for_entries(begin + i, [&](std::int64_t) { ++lengths[i]; });
      }
    });
  }

  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const override {
    parallel_ranges(end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) {
        auto at = static_cast<std::size_t>(part.row_ptr[static_cast<std::size_t>(i)]);
        const CounterRandom value = value_.of(begin + i);
        for_entries(begin + i, [&](std::int64_t column) {
          part.col_idx[at] = column;
          part.values[at++] = value.symmetric(column);
        });
      }
    });
  }

 private:
  std::int64_t first(std::int64_t row) const { return std::max<std::int64_t>(0, row - bandwidth_); }
  std::int64_t last(std::int64_t row) const { return std::min(rows() - 1, row + bandwidth_); }

  template <class F>
  void for_entries(std::int64_t row, F&& f) const {
    const CounterRandom pattern = pattern_.of(row);
    for (std::int64_t column = first(row); column <= last(row); ++column)
      if (column == row || density_ == 1 || pattern.unit(column) < density_) f(column);
  }

  std::int64_t bandwidth_;
  double density_;
  CounterRandom pattern_, value_;
};

constexpr GeneratorParameter kParameters[] = {
    {"n", "100000", "number of rows and columns"},
    {"bandwidth", "16", "entries on each side of the diagonal, from 0"},
    {"density", "1", "share of the band that has entries, 0 to 1; the diagonal is always full"},
    {"seed", "1", "seed of pattern and values; values are uniform in [-1, 1)"},
};

std::unique_ptr<RowSource> make(const GeneratorArguments& given) {
  const Arguments arguments("banded", kParameters, given);
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  return std::make_unique<BandedSource>(arguments.specification(), arguments.integer("n", 0, kMost),
                                        arguments.integer("bandwidth", 0, kMost), arguments.real("density", 0, 1),
                                        arguments.seed());
}

}  // namespace

Generator banded_generator() { return {"banded", "random entries in a band around the diagonal", kParameters, make}; }

}  // namespace shardmat
