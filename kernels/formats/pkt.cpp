#include "kernels/formats/pkt.h"

#include <algorithm>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/formats/gather.h"

namespace shardmat {
namespace {

constexpr std::int64_t kGranule = 64;         // windows begin at multiples of this
constexpr std::int64_t kWidestWindow = 6144;  // 48 KiB of f64: the shared memory that every GPU gives a thread block

struct Window {
  std::int64_t first = 0;
  std::int64_t columns = 0;
};

/// The leftmost window of at most `columns` columns with the most nonzeros of rows begin … end - 1; none if it does not pay.
/// `counts` is scratch space.
Window densest_window(const Rows& rows, std::int64_t begin, std::int64_t end, std::int64_t columns,
                      HostVector<std::int64_t>& counts) {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max(), highest = -1;
  for (std::int64_t i = begin; i < end; ++i)
    if (rows.length(i) > 0) {
      lowest = std::min(lowest, rows.column(rows.begin(i)));
      highest = std::max(highest, rows.column(rows.end(i) - 1));
    }
  if (highest < 0) return {};
  const std::int64_t origin = lowest / kGranule;
  counts.assign(static_cast<std::size_t>(highest / kGranule - origin + 1), 0);
  for (std::int64_t k = rows.begin(begin); k < rows.end(end - 1); ++k)
    ++counts[static_cast<std::size_t>(rows.column(k) / kGranule - origin)];
  const std::size_t width = std::min(counts.size(), static_cast<std::size_t>(columns / kGranule));
  std::int64_t inside = 0, most = 0, best = 0;
  for (std::size_t g = 0; g < counts.size(); ++g) {
    inside += counts[g] - (g >= width ? counts[g - width] : 0);
    if (inside > most)
      most = inside, best = static_cast<std::int64_t>(g + 1) - static_cast<std::int64_t>(std::min(g + 1, width));
  }
  Window window;
  window.first = (origin + best) * kGranule;
  window.columns = std::min(static_cast<std::int64_t>(width) * kGranule, highest + 1 - window.first);
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

std::shared_ptr<const PktPattern> make_pattern(const CsrView& matrix, std::int64_t packet_rows,
                                               std::int64_t packet_columns) {
  const Rows rows(matrix);
  auto p = std::make_shared<PktPattern>();
  p->packet_rows = packet_rows;
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
      const Window window = densest_window(rows, begin, end, packet_columns, counts);
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
  return input.remember<std::shared_ptr<const PktPattern>>("pkt " + layout.text(),
                                                           [&] { return make_pattern(input.ascending(), rows, columns); });
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

std::vector<Policy> pkt_layouts(ConversionInput&) {
  return {{{"packet_rows", 256}, {"packet_columns", 2048}}, {{"packet_rows", 512}, {"packet_columns", 4096}}};
}

std::int64_t pkt_bytes(ConversionInput& input, const Policy& layout) {
  const auto p = pattern_of(input, layout);
  return 8 * p->packets() +
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
  pkt->window_first = upload<std::int32_t>(p.window_first, stream);
  pkt->window_columns = upload<std::int32_t>(p.window_columns, stream);
  pkt->slice_ptr = upload_offsets(p.slice_ptr, pkt->wide_offsets, stream);
  pkt->rest_ptr = upload_offsets(p.rest_ptr, pkt->wide_offsets, stream);
  const Rows rows(input.ascending());
  const std::int64_t stored = p.slice_ptr.back(), rest = p.rest_ptr.back();
  pkt->local_columns = Buffer(pkt->device, static_cast<std::size_t>(stored) * sizeof(std::uint16_t));
  fill_ranges<std::uint16_t>(
      pkt->local_columns, stored, stream, [&](std::int64_t begin, std::int64_t end, std::uint16_t* out) {
        local_column_source(p, rows)(begin, end, [&](std::int64_t column) { *out++ = static_cast<std::uint16_t>(column); });
      });
  pkt->rest_columns = upload_gathered<std::int32_t>(rest, stream, rest_source(p, rows), rows.columns(), 0);
  pkt->local_values = Buffer(pkt->device, static_cast<std::size_t>(stored) * size_of(pkt->type));
  pkt->rest_values = Buffer(pkt->device, static_cast<std::size_t>(rest) * size_of(pkt->type));
  update_pkt(*pkt, input);
  return pkt;
}

void update_pkt(Storage& storage, ConversionInput& input) {
  const auto& pkt = static_cast<PktStorage&>(storage);
  const PktPattern& p = *pkt.pattern;
  const Rows rows(input.ascending());
  gather_values(pkt.local_values, pkt.type, p.slice_ptr.back(), input.stream(), local_source(p, rows), rows.values());
  gather_values(pkt.rest_values, pkt.type, p.rest_ptr.back(), input.stream(), rest_source(p, rows), rows.values());
}

}  // namespace shardmat
