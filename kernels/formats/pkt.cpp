#include "kernels/formats/pkt.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/formats/gather.h"
#include "kernels/matrix/clustering.h"
#include "kernels/matrix/ordering.h"

namespace shardmat {
namespace {

constexpr std::int64_t kGranule = 64;         // windows begin at multiples of this, or of a cluster
constexpr std::int64_t kWidestWindow = 6144;  // 48 KiB of f64: the shared memory that every GPU gives a thread block

struct Window {
  std::int64_t first = 0;
  std::int64_t columns = 0;
};

/// The leftmost window of at most `columns` columns with the most nonzeros of rows begin … end - 1; none if it does not pay.
/// It begins at a multiple of `granule`. `counts` is scratch space.
Window densest_window(const Rows& rows, std::int64_t begin, std::int64_t end, std::int64_t columns, std::int64_t granule,
                      HostVector<std::int64_t>& counts) {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max(), highest = -1;
  for (std::int64_t i = begin; i < end; ++i)
    if (rows.length(i) > 0) {
      lowest = std::min(lowest, rows.column(rows.begin(i)));
      highest = std::max(highest, rows.column(rows.end(i) - 1));
    }
  if (highest < 0) return {};
  const std::int64_t origin = lowest / granule;
  counts.assign(static_cast<std::size_t>(highest / granule - origin + 1), 0);
  for (std::int64_t k = rows.begin(begin); k < rows.end(end - 1); ++k)
    ++counts[static_cast<std::size_t>(rows.column(k) / granule - origin)];
  const std::size_t width = std::min(counts.size(), static_cast<std::size_t>(columns / granule));
  std::int64_t inside = 0, most = 0, best = 0;
  for (std::size_t g = 0; g < counts.size(); ++g) {
    inside += counts[g] - (g >= width ? counts[g - width] : 0);
    if (inside > most)
      most = inside, best = static_cast<std::int64_t>(g + 1) - static_cast<std::int64_t>(std::min(g + 1, width));
  }
  Window window;
  window.first = (origin + best) * granule;
  window.columns = std::min(static_cast<std::int64_t>(width) * granule, highest + 1 - window.first);
  return most < window.columns ? Window{} : window;
}

/// Columns of `row` inside the window: where they begin, and into the pattern how many there are not.
std::int64_t place_row(PktPattern& p, const Rows& rows, std::int64_t row, const Window& window) {
  const ColumnPointer columns = rows.columns();
  const ColumnPointer begin = std::lower_bound(columns + rows.begin(row), columns + rows.end(row), window.first);
  const ColumnPointer end = std::lower_bound(begin, columns + rows.end(row), window.first + window.columns);
  p.inside_first[static_cast<std::size_t>(row)] = begin - columns;
  p.rest_ptr[static_cast<std::size_t>(row) + 1] = rows.length(row) - (end - begin);
  return end - begin;
}

/// The reordered matrix without values, or `matrix` if the pattern has no order.
CsrView reordered(const PktPattern& p, const CsrView& matrix) {
  if (p.order.empty()) return matrix;
  return {matrix.rows, matrix.cols, p.row_ptr, p.columns, {}, nullptr};
}

/// The matrix with rows and columns in the order p.order.
void apply_order(PktPattern& p, const CsrView& matrix) {
  const Rows rows(matrix);
  const HostVector<std::int64_t> place = invert_permutation(p.order);
  p.row_ptr.resize(p.order.size() + 1);
  for (std::size_t i = 0; i < p.order.size(); ++i) p.row_ptr[i + 1] = rows.length(p.order[i]);
  accumulate_offsets(p.row_ptr);
  p.columns.resize(static_cast<std::size_t>(matrix.nnz()));
  p.entries.resize(p.columns.size());
  parallel_ranges(rows.count(), 1 << 10, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t old = p.order[static_cast<std::size_t>(i)];
      const auto first = p.entries.begin() + p.row_ptr[static_cast<std::size_t>(i)];
      const auto column = [&](std::int64_t k) { return place[static_cast<std::size_t>(rows.column(k))]; };
      std::iota(first, first + rows.length(old), rows.begin(old));
      std::sort(first, first + rows.length(old), [&](std::int64_t a, std::int64_t b) { return column(a) < column(b); });
      std::transform(first, first + rows.length(old), p.columns.begin() + p.row_ptr[static_cast<std::size_t>(i)], column);
    }
  });
}

/// Sorts the rows of each packet by descending number of nonzeros inside its window, so that padding costs little. Windows
/// begin and end with packets, so the windows stay what they are.
void sort_packets(PktPattern& p, const CsrView& matrix, std::int64_t packet_columns) {
  const Rows rows(reordered(p, matrix));
  HostVector<std::int64_t> inside(p.order.size());
  const std::int64_t packets = (rows.count() + p.packet_rows - 1) / p.packet_rows;
  HostVector<std::int64_t> sorted(p.order.size());
  parallel_ranges(packets, 1, [&](std::int64_t first_packet, std::int64_t last_packet) {
    HostVector<std::int64_t> counts;
    std::vector<std::int64_t> of_packet;
    for (std::int64_t packet = first_packet; packet < last_packet; ++packet) {
      const std::int64_t begin = packet * p.packet_rows, end = std::min(begin + p.packet_rows, rows.count());
      const Window window = densest_window(rows, begin, end, packet_columns, p.packet_rows, counts);
      for (std::int64_t i = begin; i < end; ++i) {
        const ColumnPointer first = rows.columns() + rows.begin(i), last = rows.columns() + rows.end(i);
        inside[static_cast<std::size_t>(i)] =
            std::lower_bound(first, last, window.first + window.columns) - std::lower_bound(first, last, window.first);
      }
      of_packet.resize(static_cast<std::size_t>(end - begin));
      std::iota(of_packet.begin(), of_packet.end(), begin);
      std::stable_sort(of_packet.begin(), of_packet.end(), [&](std::int64_t a, std::int64_t b) {
        return inside[static_cast<std::size_t>(a)] > inside[static_cast<std::size_t>(b)];
      });
      for (std::size_t i = 0; i < of_packet.size(); ++i)
        sorted[static_cast<std::size_t>(begin) + i] = p.order[static_cast<std::size_t>(of_packet[i])];
    }
  });
  p.order = std::move(sorted);
  apply_order(p, matrix);
}

std::shared_ptr<const PktPattern> make_pattern(const CsrView& matrix, std::int64_t packet_rows, std::int64_t packet_columns,
                                               bool clusters) {
  auto p = std::make_shared<PktPattern>();
  p->packet_rows = packet_rows;
  if (clusters) {
    p->order = order_by_clusters(matrix, packet_rows);
    apply_order(*p, matrix);
    sort_packets(*p, matrix, packet_columns);
  }
  const std::int64_t granule = clusters ? packet_rows : kGranule;
  const Rows rows(reordered(*p, matrix));
  const auto packets = static_cast<std::size_t>((rows.count() + packet_rows - 1) / packet_rows);
  p->window_first.resize(packets);
  p->window_columns.resize(packets);
  p->inside_first.resize(static_cast<std::size_t>(rows.count()));
  p->rest_ptr.resize(static_cast<std::size_t>(rows.count()) + 1);
  p->slice_ptr.resize(static_cast<std::size_t>((rows.count() + kPktSlice - 1) / kPktSlice) + 1);
  parallel_ranges(p->packets(), 1, [&](std::int64_t first_packet, std::int64_t last_packet) {
    HostVector<std::int64_t> counts;
    for (std::int64_t packet = first_packet; packet < last_packet; ++packet) {
      const std::int64_t begin = packet * packet_rows, end = std::min(begin + packet_rows, rows.count());
      const Window window = densest_window(rows, begin, end, packet_columns, granule, counts);
      p->window_first[static_cast<std::size_t>(packet)] = static_cast<std::int32_t>(window.first);
      p->window_columns[static_cast<std::size_t>(packet)] = static_cast<std::int32_t>(window.columns);
      for (std::int64_t first = begin; first < end; first += kPktSlice) {
        std::int64_t width = 0;
        for (std::int64_t i = first; i < std::min(first + kPktSlice, end); ++i)
          width = std::max(width, place_row(*p, rows, i, window));
        p->slice_ptr[static_cast<std::size_t>(first / kPktSlice) + 1] = width * kPktSlice;
      }
    }
  });
  accumulate_offsets(p->slice_ptr);
  accumulate_offsets(p->rest_ptr);
  return p;
}

std::shared_ptr<const PktPattern> pattern_of(ConversionInput& input, const Policy& layout) {
  const int rows = layout.at("packet_rows"), columns = layout.at("packet_columns");
  if (rows < 32 || rows > 1024 || rows % kPktSlice != 0)
    throw Error(ErrorKind::usage, "pkt: packet_rows must be a multiple of 32 from 32 to 1024");
  if (columns < kGranule || columns > kWidestWindow || columns % kGranule != 0)
    throw Error(ErrorKind::usage, "pkt: packet_columns must be a multiple of 64 from 64 to 6144");
  // Layouts of earlier versions and of tests have no such tunable.
  const bool clusters = !layout.split("cluster=1").first.empty() && layout.at("cluster") != 0;
  if (clusters && input.matrix().rows != input.matrix().cols)
    throw Error(ErrorKind::usage, "pkt: cluster must be 0 for a matrix that is not square");
  if (clusters && columns < rows)
    throw Error(ErrorKind::usage, "pkt: with clusters packet_columns must be packet_rows or more");
  return input.remember<std::shared_ptr<const PktPattern>>(
      "pkt " + layout.text(), [&] { return make_pattern(input.ascending(), rows, columns, clusters); });
}

/// The source's nonzeros of the reordered matrix, as places in the matrix as it is.
template <class Source>
auto as_it_is(const PktPattern& p, Source source) {
  return [&p, source](std::int64_t begin, std::int64_t end, auto put) {
    source(begin, end, [&](std::int64_t k) { put(k < 0 || p.order.empty() ? k : p.entries[static_cast<std::size_t>(k)]); });
  };
}

/// Nonzeros of `row` inside its packet's window.
std::int64_t inside(const PktPattern& p, const Rows& rows, std::int64_t row) {
  const auto i = static_cast<std::size_t>(row);
  return rows.length(row) - (p.rest_ptr[i + 1] - p.rest_ptr[i]);
}

auto local_source(const PktPattern& p, const Rows& rows) {
  return sliced_source(p.slice_ptr, kPktSlice, [&p, rows](std::int64_t row, std::int64_t j) -> std::int64_t {
    return row < rows.count() && j < inside(p, rows, row) ? p.inside_first[static_cast<std::size_t>(row)] + j : -1;
  });
}

auto local_column_source(const PktPattern& p, const Rows& rows) {
  return sliced_source(p.slice_ptr, kPktSlice, [&p, rows](std::int64_t row, std::int64_t j) -> std::int64_t {
    if (row >= rows.count() || j >= inside(p, rows, row)) return kPktPadding;
    return rows.column(p.inside_first[static_cast<std::size_t>(row)] + j) -
           p.window_first[static_cast<std::size_t>(row / p.packet_rows)];
  });
}

auto rest_source(const PktPattern& p, const Rows& rows) {
  return rows_source(p.rest_ptr, [&p, rows](std::int64_t row, auto put) {
    const std::int64_t first = p.inside_first[static_cast<std::size_t>(row)], last = first + inside(p, rows, row);
    for (std::int64_t k = rows.begin(row); k < first; ++k) put(k);
    for (std::int64_t k = last; k < rows.end(row); ++k) put(k);
  });
}

bool wide_offsets(const PktPattern& p) { return needs_wide_offsets(std::max(p.slice_ptr.back(), p.rest_ptr.back())); }

}  // namespace

std::vector<Policy> pkt_layouts(ConversionInput& input) {
  const auto layout = [](int rows, int columns, int cluster) {
    return Policy{{"packet_rows", rows}, {"packet_columns", columns}, {"cluster", cluster}};
  };
  const std::vector<Policy> as_it_is{layout(256, 2048, 0), layout(512, 4096, 0)};
  if (input.matrix().rows != input.matrix().cols) return as_it_is;
  return {layout(512, 4096, 1), layout(1024, 6144, 1), as_it_is[0], as_it_is[1]};
}

std::int64_t pkt_bytes(ConversionInput& input, const Policy& layout) {
  const auto p = pattern_of(input, layout);
  return 8 * p->packets() + 4 * static_cast<std::int64_t>(p->order.size()) +
         (wide_offsets(*p) ? 8 : 4) * static_cast<std::int64_t>(p->slice_ptr.size() + p->rest_ptr.size()) +
         (2 + input.value_bytes()) * p->slice_ptr.back() + (4 + input.value_bytes()) * p->rest_ptr.back();
}

std::shared_ptr<Storage> convert_pkt(ConversionInput& input, const Policy& layout) {
  Stream& stream = input.stream();
  auto pkt = std::make_shared<PktStorage>();
  pkt->describe(input, pkt_bytes(input, layout));
  pkt->pattern = pattern_of(input, layout);
  const PktPattern& p = *pkt->pattern;
  for (const std::int32_t columns : p.window_columns)
    pkt->widest_window = std::max<std::int64_t>(pkt->widest_window, columns);
  pkt->wide_offsets = wide_offsets(p);
  if (!p.order.empty()) pkt->order = upload<std::int32_t>(p.order, stream);
  pkt->window_first = upload<std::int32_t>(p.window_first, stream);
  pkt->window_columns = upload<std::int32_t>(p.window_columns, stream);
  pkt->slice_ptr = upload_offsets(p.slice_ptr, pkt->wide_offsets, stream);
  pkt->rest_ptr = upload_offsets(p.rest_ptr, pkt->wide_offsets, stream);
  const Rows rows(reordered(p, input.ascending()));
  const std::int64_t stored = p.slice_ptr.back(), rest = p.rest_ptr.back();
  pkt->local_columns = Buffer(pkt->device, static_cast<std::size_t>(stored) * sizeof(std::uint16_t));
  fill_ranges<std::uint16_t>(
      pkt->local_columns, stored, stream, [&](std::int64_t begin, std::int64_t end, std::uint16_t* out) {
        local_column_source(p, rows)(begin, end, [&](std::int64_t column) { *out++ = static_cast<std::uint16_t>(column); });
      });
  pkt->rest_columns =
      upload_gathered<std::int32_t>(rest, stream, as_it_is(p, rest_source(p, rows)), Rows(input.ascending()).columns(), 0);
  pkt->local_values = Buffer(pkt->device, static_cast<std::size_t>(stored) * size_of(pkt->type));
  pkt->rest_values = Buffer(pkt->device, static_cast<std::size_t>(rest) * size_of(pkt->type));
  update_pkt(*pkt, input);
  return pkt;
}

void update_pkt(Storage& storage, ConversionInput& input) {
  const auto& pkt = static_cast<PktStorage&>(storage);
  const PktPattern& p = *pkt.pattern;
  const CsrView& matrix = input.ascending();
  const Rows rows(reordered(p, matrix));
  const ValuePointer values = Rows(matrix).values();
  gather_values(pkt.local_values, pkt.type, p.slice_ptr.back(), input.stream(), as_it_is(p, local_source(p, rows)), values);
  gather_values(pkt.rest_values, pkt.type, p.rest_ptr.back(), input.stream(), as_it_is(p, rest_source(p, rows)), values);
}

}  // namespace shardmat
