// rmat: a recursive power-law graph (Chakrabarti, Zhan, Faloutsos: R-MAT, 2004) made row by row. How many
// edges fall into each half of a range of rows is a binomial number seeded by that range, so a rank finds the
// edges of its own rows by descending a binary tree; given the row, the bits of a column are independent. The
// distribution is that of drawing all edges one by one. Vertices are not shuffled: low numbers have the long
// rows.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/parallel.h"
#include "partition/generators/arguments.h"
#include "partition/generators/binomial.h"
#include "partition/generators/counter_random.h"
#include "partition/generators/families.h"
#include "partition/generators/generated_source.h"

namespace shardmat {
namespace {

constexpr std::uint64_t kSplitStream = 4, kColumnStream = 5, kWeightStream = 6;
constexpr std::int64_t kRowsPerTask = 256;

struct RmatOptions {
  int scale = 0;
  std::int64_t edges = 0;
  double a = 0, b = 0, c = 0;
  bool uniform = false;
  std::uint64_t seed = 0;
};

class RmatSource final : public GeneratedSource {
 public:
  RmatSource(std::string name, const RmatOptions& options)
      : GeneratedSource(std::move(name), std::int64_t{1} << options.scale, std::int64_t{1} << options.scale),
        options_(options),
        upper_(options.a + options.b),
        right_{threshold(options.b, options.a), threshold(1 - upper_ - options.c, options.c)},
        split_(options.seed, kSplitStream),
        column_(options.seed, kColumnStream),
        weight_(options.seed, kWeightStream) {}

 protected:
  void count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const override {
    lay_out(begin, end, lengths);
    parallel_tasks((end - begin + kRowsPerTask - 1) / kRowsPerTask, [&](std::int64_t task) {
      std::vector<std::int64_t> columns;
      for (std::int64_t row = begin + task * kRowsPerTask; row < std::min(end, begin + (task + 1) * kRowsPerTask); ++row) {
        columns.resize(static_cast<std::size_t>(lengths[row - begin]));
        draw_columns(row, columns);
        std::sort(columns.begin(), columns.end());
        lengths[row - begin] = std::unique(columns.begin(), columns.end()) - columns.begin();
      }
    });
  }

  /// Edges of each row, duplicates counted.
  void lay_out(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const override {
    parallel_tasks((end - begin + kRowsPerTask - 1) / kRowsPerTask, [&](std::int64_t task) {
      const std::int64_t from = begin + task * kRowsPerTask;
      descend(0, 0, options_.edges, from, std::min(end, from + kRowsPerTask), lengths + (from - begin));
    });
  }

  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const override {
    parallel_tasks((end - begin + kRowsPerTask - 1) / kRowsPerTask, [&](std::int64_t task) {
      for (std::int64_t row = begin + task * kRowsPerTask; row < std::min(end, begin + (task + 1) * kRowsPerTask); ++row) {
        const auto i = static_cast<std::size_t>(row - begin);
        const auto first = static_cast<std::size_t>(part.row_ptr[i]);
        const std::span columns(part.col_idx.data() + first, part.col_idx.data() + part.row_ptr[i + 1]);
        draw_columns(row, columns);
        const CounterRandom weight = weight_.of(row);
        for (std::size_t k = 0; k < columns.size(); ++k)
          part.values[first + k] = options_.uniform ? 1 : 0.5 + weight.unit(static_cast<std::int64_t>(k));
      }
    });
    sort_rows_and_sum_duplicates(part);
  }

 private:
  /// Splits the edges of the rows with the given leading bits down to single rows; writes those of rows
  /// [begin, end).
  void descend(int level, std::int64_t prefix, std::int64_t edges, std::int64_t begin, std::int64_t end,
               std::int64_t* lengths) const {
    const int below = options_.scale - level;
    const std::int64_t first = prefix << below, last = (prefix + 1) << below;
    if (last <= begin || first >= end) return;
    if (edges == 0) {
      std::fill(lengths + (std::max(first, begin) - begin), lengths + (std::min(last, end) - begin), 0);
    } else if (below == 0) {
      lengths[first - begin] = edges;
    } else {
      // In the binary tree the node with these bits is number 2^level + prefix.
      const std::int64_t upper = binomial(edges, upper_, split_.of((std::int64_t{1} << level) + prefix));
      descend(level + 1, 2 * prefix, upper, begin, end, lengths);
      descend(level + 1, 2 * prefix + 1, edges - upper, begin, end, lengths);
    }
  }

  /// 2^32 times the probability that a column's bit is 1, beside `zero`.
  static std::uint64_t threshold(double one, double zero) {
    return one > 0 ? static_cast<std::uint64_t>(one / (one + zero) * 0x1p32) : 0;
  }

  void draw_columns(std::int64_t row, std::span<std::int64_t> columns) const {
    const CounterRandom random = column_.of(row);
    const int draws = (options_.scale + 1) / 2;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      std::int64_t column = 0;
      for (int draw = 0; draw < draws; ++draw) {
        const std::uint64_t bits = random.bits(static_cast<std::int64_t>(k) * draws + draw);
        for (int half = 0; half < 2 && 2 * draw + half < options_.scale; ++half) {
          const std::int64_t row_bit = row >> (options_.scale - 1 - 2 * draw - half) & 1;
          const std::uint64_t number = half == 0 ? bits >> 32 : bits & 0xffffffff;
          column = 2 * column + (number < right_[row_bit] ? 1 : 0);
        }
      }
      columns[k] = column;
    }
  }

  RmatOptions options_;
  double upper_;            ///< probability of a row's bit to be 0
  std::uint64_t right_[2];  ///< threshold for a column's bit to be 1, by the row's bit
  CounterRandom split_, column_, weight_;
};

constexpr GeneratorParameter kParameters[] = {
    {"scale", "16", "2^scale rows and columns, 1 to 40"},
    {"edge_factor", "16", "edges per row on average, before duplicates are added up"},
    {"a", "0.57", "probability of the upper left quarter"},
    {"b", "0.19", "probability of the upper right quarter"},
    {"c", "0.19", "probability of the lower left quarter"},
    {"seed", "1", "seed of edges and weights"},
    {"uniform", "off", "all edges weigh 1, not 0.5 to 1.5"},
};

std::unique_ptr<RowSource> make(const GeneratorArguments& given) {
  const Arguments arguments("rmat", kParameters, given);
  RmatOptions options;
  options.scale = static_cast<int>(arguments.integer("scale", 1, 40));
  options.edges = arguments.integer("edge_factor", 0, 1 << 20) << options.scale;
  options.a = arguments.real("a", 0, 1);
  options.b = arguments.real("b", 0, 1);
  options.c = arguments.real("c", 0, 1);
  if (options.a + options.b + options.c > 1 + 1e-12)
    arguments.refuse(fmt::format("a + b + c = {} is more than 1", options.a + options.b + options.c));
  options.uniform = arguments.flag("uniform");
  options.seed = arguments.seed();
  return std::make_unique<RmatSource>(arguments.specification(), options);
}

}  // namespace

Generator rmat_generator() { return {"rmat", "recursive power-law graph (R-MAT), 2^scale vertices", kParameters, make}; }

}  // namespace shardmat
