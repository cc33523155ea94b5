#include "kernels/formats/sell.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <string>

#include "kernels/base/error.h"
#include "kernels/cost_model.h"
#include "kernels/formats/gather.h"

namespace shardmat {
namespace {

/// Rows of the window that begins at `first` by descending length, equal ones in their old order.
void sort_window(const Rows& rows, std::int64_t first, std::int32_t* begin, std::int32_t* end) {
  std::iota(begin, end, 0);
  std::stable_sort(begin, end,
                   [&](std::int32_t a, std::int32_t b) { return rows.length(first + a) > rows.length(first + b); });
}

std::int64_t row_in_slot(const SellPattern& p, std::int64_t slot) {
  return p.sigma == 1 ? slot : slot / p.sigma * p.sigma + p.permutation[static_cast<std::size_t>(slot)];
}

std::shared_ptr<const SellPattern> make_pattern(const CsrView& matrix, std::int64_t slice, std::int64_t sigma) {
  const Rows rows(matrix);
  auto p = std::make_shared<SellPattern>();
  p->slice = slice;
  p->sigma = sigma;
  if (sigma > 1) {
    p->permutation.resize(static_cast<std::size_t>(rows.count()));
    parallel_ranges((rows.count() + sigma - 1) / sigma, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t first = begin * sigma; first < std::min(end * sigma, rows.count()); first += sigma)
        sort_window(rows, first, p->permutation.data() + first,
                    p->permutation.data() + std::min(first + sigma, rows.count()));
    });
  }
  p->slice_ptr.resize(static_cast<std::size_t>((rows.count() + slice - 1) / slice) + 1);
  parallel_ranges(p->slices(), 1 << 10, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t s = begin; s < end; ++s) {
      std::int64_t width = 0;
      for (std::int64_t slot = s * slice; slot < std::min((s + 1) * slice, rows.count()); ++slot)
        width = std::max(width, rows.length(row_in_slot(*p, slot)));
      p->slice_ptr[static_cast<std::size_t>(s) + 1] = width * slice;
    }
  });
  accumulate_offsets(p->slice_ptr);
  return p;
}

std::shared_ptr<const SellPattern> pattern_of(ConversionInput& input, const Policy& layout) {
  const int slice = layout.at("slice"), sigma = layout.at("sigma");
  if (slice < 1 || slice > 1024 || !std::has_single_bit(static_cast<unsigned>(slice)))
    throw Error(ErrorKind::usage, "sell: slice must be a power of two from 1 to 1024");
  if (sigma < 1 || (sigma != 1 && sigma % slice != 0))
    throw Error(ErrorKind::usage, "sell: sigma must be 1 (rows are not sorted) or a multiple of slice");
  return input.remember<std::shared_ptr<const SellPattern>>("sell " + layout.text(),
                                                            [&] { return make_pattern(input.matrix(), slice, sigma); });
}

/// Stored entries for each nonzero without sorting, by a sample of the slices; of small matrices by all.
double sampled_padding(ConversionInput& input, std::int64_t slice) {
  return input.remember<double>("padding of sell " + std::to_string(slice), [&] {
    constexpr std::int64_t kMostSlices = 4096;
    const Rows rows(input.matrix());
    const std::int64_t slices = (rows.count() + slice - 1) / slice, sampled = std::min(slices, kMostSlices);
    std::int64_t stored = 0, nnz = 0;
    for (std::int64_t s = 0; s < sampled; ++s) {
      const std::int64_t first = slices * s / sampled * slice, end = std::min(first + slice, rows.count());
      std::int64_t width = 0;
      for (std::int64_t i = first; i < end; ++i) width = std::max(width, rows.length(i));
      stored += width * slice, nnz += rows.begin(end) - rows.begin(first);
    }
    return nnz == 0 ? 1 : static_cast<double>(stored) / static_cast<double>(nnz);
  });
}

auto source(const SellPattern& p, const Rows& rows) {
  return sliced_source(p.slice_ptr, p.slice, [&p, rows](std::int64_t slot, std::int64_t j) -> std::int64_t {
    if (slot >= rows.count()) return -1;
    const std::int64_t row = row_in_slot(p, slot);
    return j < rows.length(row) ? rows.begin(row) + j : -1;
  });
}

}  // namespace

std::vector<Policy> sell_layouts(ConversionInput& input) {
  const auto layout = [](int sigma) { return Policy{{"slice", 32}, {"sigma", sigma}}; };
  if (sampled_padding(input, 32) <= 1.1) return {layout(1), layout(1024)};
  return {layout(1024), layout(32768), layout(1)};
}

std::int64_t sell_bytes(ConversionInput& input, const Policy& layout) {
  const auto p = pattern_of(input, layout);
  const std::int64_t stored = p->slice_ptr.back();
  return (needs_wide_offsets(stored) ? 8 : 4) * (p->slices() + 1) + 4 * static_cast<std::int64_t>(p->permutation.size()) +
         (4 + input.value_bytes()) * stored;
}

std::shared_ptr<Storage> convert_sell(ConversionInput& input, const Policy& layout) {
  Stream& stream = input.stream();
  auto sell = std::make_shared<SellStorage>();
  sell->describe(input, sell_bytes(input, layout));
  sell->pattern = pattern_of(input, layout);
  const SellPattern& p = *sell->pattern;
  const std::int64_t stored = p.slice_ptr.back();
  sell->wide_offsets = needs_wide_offsets(stored);
  sell->slice_ptr = upload_offsets(p.slice_ptr, sell->wide_offsets, stream);
  sell->permutation = upload<std::int32_t>(p.permutation, stream);
#ifdef SHARDMAT_HAVE_CUDA
  if (stream.device().backend == Backend::cuda) {
    sell->col_idx = Buffer(stream.device(), static_cast<std::size_t>(4 * stored));
    sell->values = Buffer(stream.device(), static_cast<std::size_t>(input.value_bytes() * stored));
    fill_sell_on_device(*sell, *input.csr(), stream);
    return sell;
  }
#endif
  const Rows rows(input.matrix());
  sell->col_idx = upload_gathered<std::int32_t>(stored, stream, source(p, rows), rows.columns(), -1);
  sell->values = upload_values(sell->type, stored, stream, source(p, rows), rows.values());
  return sell;
}

void update_sell(Storage& storage, ConversionInput& input) {
  const auto& sell = static_cast<SellStorage&>(storage);
  const SellPattern& p = *sell.pattern;
  const Rows rows(input.matrix());
  gather_values(sell.values, sell.type, p.slice_ptr.back(), input.stream(), source(p, rows), rows.values());
}

bool sell_cusparse_supports(const Storage& storage) {
  const auto& sell = static_cast<const SellStorage&>(storage);
  return sell.pattern->sigma == 1 && !sell.wide_offsets;
}

double sell_cusparse_cost(ConversionInput& input, const Policy& layout) {
  if (layout.at("sigma") != 1) return std::numeric_limits<double>::infinity();
  const double stored = sampled_padding(input, layout.at("slice")) * static_cast<double>(input.rows().nnz);
  return effective_bytes(input, static_cast<double>(4 + input.value_bytes()) * stored, {0.9, 32, 0});
}

}  // namespace shardmat
