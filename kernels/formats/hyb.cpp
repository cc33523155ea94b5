#include "kernels/formats/hyb.h"

#include <algorithm>
#include <functional>

#include "kernels/formats/limits.h"
#include "kernels/formats/upload.h"

namespace shardmat {
namespace {

/// Where each row's entries beyond `width` start among all of those; rows + 1 entries.
HostVector<std::int64_t> rest_starts(const CsrView& m, std::int64_t width) {
  HostVector<std::int64_t> starts(static_cast<std::size_t>(m.rows) + 1);
  starts[0] = 0;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i)
    starts[i + 1] = starts[i] + std::max<std::int64_t>(0, m.row_ptr[i + 1] - m.row_ptr[i] - width);
  return starts;
}

/// How entry k of a row's rest is found in a CSR array.
template <class From>
auto rest_of(const CsrView& m, std::int64_t width, From from) {
  return [=, row_ptr = m.row_ptr.data()](std::int64_t row, std::int64_t k) {
    return from[row_ptr[row] - row_ptr[0] + width + k];
  };
}

std::int64_t width_of(const ConversionInput& input, const Policy& layout) {
  const std::int64_t width = layout.at("width");
  if (width < 0) throw Error(ErrorKind::usage, "hyb: width must not be negative");
  return std::min(width, input.rows().max_row);
}

}  // namespace

std::vector<Policy> hyb_layouts(ConversionInput& input) {
  const CsrView& m = input.matrix();
  HostVector<std::int64_t> lengths(static_cast<std::size_t>(m.rows));
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = m.row_ptr[i + 1] - m.row_ptr[i];
  // As wide as the longest row but n.
  const auto longest_but = [&](std::int64_t n) {
    if (n >= m.rows) return Policy{{"width", 0}};
    const auto nth = lengths.begin() + n;
    std::nth_element(lengths.begin(), nth, lengths.end(), std::greater<>());
    return Policy{{"width", static_cast<int>(*nth)}};
  };
  std::vector<Policy> layouts{longest_but((m.rows + 2) / 3 - (m.rows > 0))};
  // A column that n rows use is stored as ELL while (8 + value)·n > (4 + value)·rows.
  const Policy smallest = longest_but(m.rows * (4 + input.value_bytes()) / (8 + input.value_bytes()));
  if (smallest != layouts.front()) layouts.push_back(smallest);
  return layouts;
}

std::int64_t hyb_bytes(ConversionInput& input, const Policy& layout) {
  const std::int64_t width = width_of(input, layout), rest = rest_starts(input.matrix(), width).back();
  if (rest > 0) require_int32_rows(input.matrix().rows, "hyb");
  return ell_array_bytes(input, width) + (8 + input.value_bytes()) * rest;
}

std::shared_ptr<Storage> convert_hyb(ConversionInput& input, const Policy& layout) {
  const CsrView& matrix = input.matrix();
  const std::int64_t width = width_of(input, layout);
  auto hyb = std::make_shared<HybStorage>();
  hyb->describe(input, hyb_bytes(input, layout));
  hyb->ell = convert_ell_arrays(input, width);
  const HostVector<std::int64_t> starts = rest_starts(matrix, width);
  CooEntries& rest = hyb->rest;
  rest.count = starts.back();
  rest.row = upload_runs<std::int32_t>(starts, input.stream(), [](std::int64_t row, std::int64_t) { return row; });
  rest.col_idx = upload_runs<std::int32_t>(starts, input.stream(), rest_of(matrix, width, matrix.col_idx.data()));
  dispatch(hyb->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    rest.values = upload_runs<T>(starts, input.stream(), rest_of(matrix, width, matrix.values.data()));
  });
  return hyb;
}

void update_hyb(Storage& storage, ConversionInput& input) {
  auto& hyb = static_cast<HybStorage&>(storage);
  update_ell_arrays(hyb.ell, input);
  dispatch(hyb.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_runs<T>(hyb.rest.values, rest_starts(input.matrix(), hyb.ell.width), input.stream(),
                 rest_of(input.matrix(), hyb.ell.width, input.matrix().values.data()));
  });
}

}  // namespace shardmat
