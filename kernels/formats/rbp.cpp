#include "kernels/formats/rbp.h"

#include <algorithm>

#include "kernels/formats/gather.h"
#include "kernels/formats/limits.h"

namespace shardmat {
namespace {

std::shared_ptr<const Runs> runs_of(ConversionInput& input) {
  return input.remember<std::shared_ptr<const Runs>>(
      "runs", [&] { return std::make_shared<const Runs>(find_runs(input.matrix())); });
}

EntryBytes entry_bytes(ConversionInput& input) {
  return {input.value_bytes(), needs_wide_offsets(input.matrix().nnz()) ? 8 : 4};
}

/// Formula (5) or (6), or what is too much for any memory before it overflows.
std::int64_t ell_bytes(ConversionInput& input, std::int64_t (*formula)(const RunStatistics&, EntryBytes)) {
  const RunStatistics& s = runs_of(input)->statistics;
  const std::int64_t padded = capped_product(s.rows, input.value_bytes() * s.max_in_runs + 4 * s.max_bounds);
  return padded >= std::int64_t{1} << 60 ? padded : formula(s, entry_bytes(input));
}

/// Source of the nonzeros of each row that `kept(rows, row, k)` keeps.
template <class Kept>
auto kept_source(const HostVector<std::int64_t>& offsets, const Rows& rows, Kept kept) {
  return rows_source(offsets, [rows, kept](std::int64_t row, auto put) {
    for (std::int64_t k = rows.begin(row); k < rows.end(row); ++k)
      if (kept(rows, row, k)) put(k);
  });
}

bool single(const Rows& rows, std::int64_t row, std::int64_t k) { return !in_run(rows, row, k); }

/// Position j·rows + i of `buffer` gets from[k] of the j-th nonzero k that is kept of row i, 0 behind the last. Written a
/// few columns at a time, each row going on where it was.
template <class To, class Kept, class From>
void fill_columns(const Buffer& buffer, std::int64_t width, Stream& stream, const Rows& rows, Kept kept, From from) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 24;
  if (rows.count() == 0 || width == 0) return;
  const std::int64_t at_once = std::clamp<std::int64_t>(kChunk / rows.count(), 1, width);
  HostVector<std::int64_t> next(static_cast<std::size_t>(rows.count()));
  HostVector<To> chunk(static_cast<std::size_t>(at_once * rows.count()));
  for (std::int64_t first = 0; first < width; first += at_once) {
    const std::int64_t columns = std::min(at_once, width - first);
    parallel_ranges(rows.count(), 1 << 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t k = first == 0 ? rows.begin(i) : next[static_cast<std::size_t>(i)];
        for (std::int64_t j = 0; j < columns; ++j) {
          while (k < rows.end(i) && !kept(rows, i, k)) ++k;
          chunk[static_cast<std::size_t>(j * rows.count() + i)] = k < rows.end(i) ? static_cast<To>(from[k++]) : To(0);
        }
        next[static_cast<std::size_t>(i)] = k;
      }
    });
    copy_to_device(buffer.as<To>() + first * rows.count(), chunk.data(),
                   static_cast<std::size_t>(columns * rows.count()) * sizeof(To), stream);
  }
}

void fill_singles(const RbpStorage& rbp, const Rows& rows, Stream& stream) {
  gather_values(rbp.single_values, rbp.type, rbp.runs->statistics.singles, stream,
                kept_source(rbp.runs->singles, rows, single), rows.values());
}

/// Everything but the runs.
void convert_common(RbpStorage& rbp, ConversionInput& input, std::int64_t bytes) {
  Stream& stream = input.stream();
  const Rows rows(input.matrix());
  rbp.describe(input, bytes);
  rbp.runs = runs_of(input);
  rbp.wide_offsets = entry_bytes(input).offset == 8;
  const std::int64_t singles = rbp.runs->statistics.singles;
  rbp.single_ptr = upload_offsets(rbp.runs->singles, rbp.wide_offsets, stream);
  rbp.single_columns =
      upload_gathered<std::int32_t>(singles, stream, kept_source(rbp.runs->singles, rows, single), rows.columns(), 0);
  rbp.single_values = Buffer(rbp.device, static_cast<std::size_t>(singles) * size_of(rbp.type));
}

std::shared_ptr<Storage> convert_ell(ConversionInput& input, std::int64_t bytes, bool with_lengths) {
  Stream& stream = input.stream();
  auto rbp = std::make_shared<RbpEllStorage>();
  convert_common(*rbp, input, bytes);
  const Rows rows(input.matrix());
  const RunStatistics& s = rbp->runs->statistics;
  rbp->run_bounds = Buffer(rbp->device, static_cast<std::size_t>(s.rows * s.max_bounds) * sizeof(std::int32_t));
  fill_columns<std::int32_t>(rbp->run_bounds, s.max_bounds, stream, rows, bounds_run, rows.columns());
  rbp->run_values = Buffer(rbp->device, static_cast<std::size_t>(s.rows * s.max_in_runs) * size_of(rbp->type));
  if (with_lengths) {
    const std::int64_t* in_runs = rbp->runs->in_runs.data();
    rbp->lengths = upload<std::int32_t>(s.rows, stream, [=](std::int64_t i) { return in_runs[i + 1] - in_runs[i]; });
  }
  update_rbp_ell(*rbp, input);
  return rbp;
}

}  // namespace

std::int64_t rbp_csr_bytes(ConversionInput& input, const Policy&) {
  return rbp_csr_bytes(runs_of(input)->statistics, entry_bytes(input));
}
std::int64_t rbp_ell_bytes(ConversionInput& input, const Policy&) { return ell_bytes(input, rbp_ell_bytes); }
std::int64_t rbp_ell_r_bytes(ConversionInput& input, const Policy&) { return ell_bytes(input, rbp_ell_r_bytes); }

std::shared_ptr<Storage> convert_rbp_csr(ConversionInput& input, const Policy& layout) {
  Stream& stream = input.stream();
  auto rbp = std::make_shared<RbpCsrStorage>();
  convert_common(*rbp, input, rbp_csr_bytes(input, layout));
  const Rows rows(input.matrix());
  const Runs& runs = *rbp->runs;
  rbp->value_ptr = upload_offsets(runs.in_runs, rbp->wide_offsets, stream);
  rbp->bound_ptr = upload_offsets(runs.bounds, rbp->wide_offsets, stream);
  rbp->run_bounds = upload_gathered<std::int32_t>(runs.statistics.bounds, stream, kept_source(runs.bounds, rows, bounds_run),
                                                  rows.columns(), 0);
  rbp->run_values = Buffer(rbp->device, static_cast<std::size_t>(runs.statistics.in_runs) * size_of(rbp->type));
  update_rbp_csr(*rbp, input);
  return rbp;
}

std::shared_ptr<Storage> convert_rbp_ell(ConversionInput& input, const Policy& layout) {
  return convert_ell(input, rbp_ell_bytes(input, layout), false);
}

std::shared_ptr<Storage> convert_rbp_ell_r(ConversionInput& input, const Policy& layout) {
  return convert_ell(input, rbp_ell_r_bytes(input, layout), true);
}

void update_rbp_csr(Storage& storage, ConversionInput& input) {
  const auto& rbp = static_cast<RbpCsrStorage&>(storage);
  const Rows rows(input.matrix());
  fill_singles(rbp, rows, input.stream());
  gather_values(rbp.run_values, rbp.type, rbp.runs->statistics.in_runs, input.stream(),
                kept_source(rbp.runs->in_runs, rows, in_run), rows.values());
}

void update_rbp_ell(Storage& storage, ConversionInput& input) {
  const auto& rbp = static_cast<RbpEllStorage&>(storage);
  const Rows rows(input.matrix());
  fill_singles(rbp, rows, input.stream());
  dispatch(rbp.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_columns<T>(rbp.run_values, rbp.runs->statistics.max_in_runs, input.stream(), rows, in_run, rows.values());
  });
}

std::vector<Policy> rbp_policies(const RowStatistics&) { return {Policy{{"paper", 1}, {"block_size", 128}}}; }

}  // namespace shardmat
