#include "kernels/choose/format_guide.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/choose/registry.h"

namespace shardmat {
namespace {

constexpr double kFilled = 0.9;  // share of the places of its diagonals that a diagonal matrix stores
constexpr std::int64_t kFewDiagonals = 32;
constexpr double kBlockFill = 0.75;               // of blocks: three quarters of what is stored are entries
constexpr double kBandFill = 0.75;                // of a dense band's places
constexpr double kVerySparse = 2;                 // entries a row
constexpr double kUneven = 0.5;                   // standard deviation in means
constexpr double kPadding = 2, kMostPadding = 3;  // longest row in means: of any rows, and of rows at random
constexpr double kNarrowBand = 0.1;               // of the columns

/// Formats for a class of matrices, best first, and why.
struct Class {
  std::vector<std::string_view> formats;
  std::string reason;
};

/// The places that the stored diagonals have in the matrix, at most.
double places_of_diagonals(const PatternStatistics& p) {
  return static_cast<double>(p.diagonals) * static_cast<double>(std::min(p.rows, p.cols));
}

/// The places of the band from the lowest to the highest diagonal with entries, in a square matrix.
double places_of_band(const PatternStatistics& p) {
  const auto n = static_cast<double>(p.rows), lower = static_cast<double>(p.lower_bandwidth),
             upper = static_cast<double>(p.upper_bandwidth);
  return n * (lower + upper + 1) - lower * (lower + 1) / 2 - upper * (upper + 1) / 2;
}

bool is_narrow_band(const PatternStatistics& p) {
  return static_cast<double>(p.lower_bandwidth + p.upper_bandwidth + 1) <= kNarrowBand * static_cast<double>(p.cols);
}

/// True if the matrix has fewer occupied blocks of this size than a full band would: then the entries come in such blocks.
bool has_smaller_blocks(const PatternStatistics& p, const BlockStatistics& block) {
  constexpr double kFewer = 0.9;
  const auto up = [&](std::int64_t width) { return static_cast<double>((width + block.size - 1) / block.size); };
  const double lower = up(p.lower_bandwidth), upper = up(p.upper_bandwidth);
  const double full = up(p.rows) * (lower + upper + 1) - lower * (lower + 1) / 2 - upper * (upper + 1) / 2;
  return static_cast<double>(block.occupied) < kFewer * full;
}

bool is_dense_band(const PatternStatistics& p) {
  if (p.rows != p.cols || !is_narrow_band(p) || static_cast<double>(p.nnz) < kBandFill * places_of_band(p)) return false;
  return std::none_of(p.blocks.begin(), p.blocks.end(),
                      [&](const BlockStatistics& block) { return has_smaller_blocks(p, block); });
}

/// Whether padding to the longest row costs little. Rows whose entries lie at random have binomial lengths: their longest
/// is that of so many normal numbers, mean + σ √(2 ln n), with room for chance.
bool is_padded_cheaply(const RowStatistics& r) {
  const double chance = std::sqrt(2 * std::log(std::max<double>(2, static_cast<double>(r.rows)))) + 2,
               at_random = r.mean_row + chance * std::max(r.stddev_row, std::sqrt(r.mean_row));
  return static_cast<double>(r.max_row) <= std::min(kMostPadding * r.mean_row, std::max(kPadding * r.mean_row, at_random));
}

Class class_of(const PatternStatistics& p, const RowStatistics& r) {
  if (p.nnz == 0) return {{"csr"}, "the matrix is empty"};
  const double filled = static_cast<double>(p.nnz) / places_of_diagonals(p);
  if (p.diagonals <= kFewDiagonals && filled >= kFilled)
    return {{"dia"}, fmt::format("all entries lie on {} diagonals, which are {:.0f} % full", p.diagonals, 100 * filled)};
  if (is_dense_band(p))
    return {{"ell", "ell_r", "sell", "packed"},
            fmt::format(
                "a dense band of {} below and {} above the diagonal, {:.0f} % full: rows of equal length need no padding",
                p.lower_bandwidth, p.upper_bandwidth, 100 * static_cast<double>(p.nnz) / places_of_band(p))};
  const auto block =
      std::max_element(p.blocks.begin(), p.blocks.end(), [&](const BlockStatistics& a, const BlockStatistics& b) {
        return a.fill(p.nnz) < b.fill(p.nnz) || (a.fill(p.nnz) == b.fill(p.nnz) && a.size < b.size);
      });
  if (block != p.blocks.end() && block->fill(p.nnz) >= kBlockFill)
    return {{"bcsr", "packed"},
            fmt::format("entries come in dense blocks: {0} × {0} blocks are {1:.0f} % full", block->size,
                        100 * block->fill(p.nnz))};
  if (r.mean_row < kVerySparse)
    return {{"coo"},
            fmt::format("very sparse: {:.2g} entries a row, {} of {} rows empty", r.mean_row, r.empty_rows, r.rows)};
  const double spread = r.stddev_row / r.mean_row;
  if ((p.lower_triangular() || p.upper_triangular()) && spread > kUneven / 2)
    return {{"jds_t", "jds"}, "triangular, with row lengths from one to many: rows sorted by length need no padding"};
  if (spread > kUneven)
    return {{"hyb", "csr"},
            fmt::format("uneven rows: mean {:.1f}, standard deviation {:.1f}, longest {}; the usual part in ELL, "
                        "the rest in COO",
                        r.mean_row, r.stddev_row, r.max_row)};
  const bool banded = is_narrow_band(p);
  const std::string even = fmt::format("rows of about equal length (mean {:.1f}, longest {})", r.mean_row, r.max_row);
  const std::string where = banded ? fmt::format("a band of {} below and {} above", p.lower_bandwidth, p.upper_bandwidth)
                                   : std::string("columns anywhere");
  if (is_padded_cheaply(r)) return {{"ell", "ell_r", "sell", "packed"}, even + ", " + where + ": padding costs little"};
  return {{"sell", "packed", "hyb"}, even + ", " + where + "; slices keep the few long ones from padding all"};
}

}  // namespace

Recommendation recommended_format(const PatternStatistics& pattern, const RowStatistics& rows,
                                  std::span<const std::string_view> available) {
  const Class found = class_of(pattern, rows);
  for (const std::string_view format : found.formats)
    if (std::find(available.begin(), available.end(), format) != available.end()) return {std::string(format), found.reason};
  return {"csr", found.reason + fmt::format(" (which would suit {}, not in this build)", found.formats.front())};
}

Recommendation recommended_format(const PatternStatistics& pattern, const RowStatistics& rows) {
  std::vector<std::string_view> names;
  for (const Format& format : formats()) names.push_back(format.name);
  return recommended_format(pattern, rows, names);
}

}  // namespace shardmat
