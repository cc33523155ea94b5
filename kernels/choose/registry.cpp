#include "kernels/choose/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/choose/kernel_list.h"
#include "kernels/cost_model.h"
#include "kernels/formats/bcsr.h"
#include "kernels/formats/coo.h"
#include "kernels/formats/crs_paper.h"
#include "kernels/formats/csc.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/dia.h"
#include "kernels/formats/fold.h"
#include "kernels/formats/hyb.h"
#include "kernels/formats/jds.h"
#include "kernels/formats/packed.h"
#include "kernels/formats/pkt.h"
#include "kernels/formats/rbp.h"
#include "kernels/formats/sell.h"
#include "kernels/formats/symmetric.h"
#include "kernels/formats/tiers.h"
#include "kernels/formats/tiled.h"

namespace shardmat {
namespace {

[[maybe_unused]] std::vector<Policy> thread_blocks(const RowStatistics&) {
  return {Policy{{"block_size", 128}}, Policy{{"block_size", 256}}};
}
bool always(ValueType, const Policy&, const Policy&) { return true; }
/// Lanes lie along the rows of X; several lanes on a group of rows would take more loads for the same values.
Policy packed_spmm_layout(ConversionInput& input) {
  Policy layout = packed_layouts(input).front();
  return layout.at("block") <= 3 ? layout.with("lanes=1") : layout;
}

constexpr Format kFormats[] = {
    {.name = "csr",
     .help = "compressed sparse rows, 32-bit columns",
     .bytes = csr_bytes,
     .convert = convert_csr,
     .update = update_csr,
     .takes_halves = true},
    {.name = "coo",
     .help = "row, column and value of each nonzero",
     .bytes = coo_bytes,
     .convert = convert_coo,
     .update = update_coo},
    {.name = "csc", .help = "compressed sparse columns", .bytes = csc_bytes, .convert = convert_csc, .update = update_csc},
    {.name = "ell",
     .help = "rows padded to the longest, transposed",
     .bytes = ell_bytes,
     .convert = convert_ell,
     .update = update_ell},
    {.name = "ell_r", .help = "ell with row lengths", .bytes = ell_r_bytes, .convert = convert_ell_r, .update = update_ell},
    {.name = "hyb",
     .help = "ell for the usual part of the rows, coo for the rest",
     .layouts = hyb_layouts,
     .bytes = hyb_bytes,
     .convert = convert_hyb,
     .update = update_hyb},
    {.name = "jds",
     .help = "rows sorted by length, one after another",
     .bytes = jds_bytes,
     .convert = convert_jds,
     .update = update_jds},
    {.name = "jds_t",
     .help = "rows sorted by length, stored by jagged diagonals",
     .bytes = jds_t_bytes,
     .convert = convert_jds_t,
     .update = update_jds},
    {.name = "dia",
     .help = "whole diagonals, without columns",
     .bytes = dia_bytes,
     .convert = convert_dia,
     .update = update_dia},

    {.name = "sell",
     .help = "slices padded to their longest row (SELL-C-sigma)",
     .layouts = sell_layouts,
     .bytes = sell_bytes,
     .convert = convert_sell,
     .update = update_sell},
    {.name = "bcsr",
     .help = "dense blocks with one column index each",
     .layouts = bcsr_layouts,
     .bytes = bcsr_bytes,
     .convert = convert_bcsr,
     .update = update_bcsr},
    {.name = "rbp_csr",
     .help = "row block packing of CSR",
     .bytes = rbp_csr_bytes,
     .convert = convert_rbp_csr,
     .update = update_rbp_csr},
    {.name = "rbp_ell",
     .help = "row block packing of ELL",
     .bytes = rbp_ell_bytes,
     .convert = convert_rbp_ell,
     .update = update_rbp_ell},
    {.name = "rbp_ell_r",
     .help = "row block packing of ELL-R",
     .bytes = rbp_ell_r_bytes,
     .convert = convert_rbp_ell_r,
     .update = update_rbp_ell},
    {.name = "fold",
     .help = "rows folded to one width, stored transposed",
     .layouts = fold_layouts,
     .bytes = fold_bytes,
     .convert = convert_fold,
     .update = update_fold},
    {.name = "pkt",
     .help = "packets with 16-bit columns, and a CSR rest",
     .layouts = pkt_layouts,
     .bytes = pkt_bytes,
     .convert = convert_pkt,
     .update = update_pkt},
    {.name = "packed",
     .help = "node blocks and runs over slices, few columns",
     .layouts = packed_layouts,
     .bytes = packed_bytes,
     .convert = convert_packed,
     .update = update_packed,
     .spmm_layout = packed_spmm_layout,
     .ordered_layout = packed_ordered_layout},
    {.name = "tiled",
     .help = "tiles of neighbouring rows with 16-bit columns",
     .layouts = tiled_layouts,
     .bytes = tiled_bytes,
     .convert = convert_tiled,
     .update = update_tiled},
    {.name = "tiers",
     .help = "columns sorted by use, in tiers with 16-bit columns, and a rest",
     .layouts = tiers_layouts,
     .bytes = tiers_bytes,
     .convert = convert_tiers,
     .update = update_tiers},
    {.name = "symmetric",
     .help = "of mirrored equal entries one, in blocks",
     .layouts = symmetric_layouts,
     .bytes = symmetric_bytes,
     .convert = convert_symmetric,
     .entries = StoredEntries::half},
};

constexpr Backend kHost = Backend::host;
[[maybe_unused]] constexpr Backend kCuda = Backend::cuda;

// In the order of preference when nothing is measured.
constexpr Kernel kKernels[] = {
    {.name = "bcsr_host",
     .format = "bcsr",
     .backend = kHost,
     .help = "threads over block rows",
     .automatic = true,
     .make = make_bcsr_host,
     .estimate = estimate<bcsr_estimate, 75>,
     .sums_in_order = always},
    {.name = "packed_host",
     .format = "packed",
     .backend = kHost,
     .help = "threads over slices",
     .automatic = true,
     .policies = packed_host_policies,
     .make = make_packed_host,
     .estimate = packed_host_cost,
     .sums_in_order = always},
    {.name = "csr_host",
     .format = "csr",
     .backend = kHost,
     .help = "threads over rows of equal nonzeros",
     .automatic = true,
     .policies = csr_host_policies,
     .make = make_csr_host,
     .estimate = csr_host_cost,
     .yardstick = true,
     .sums_in_order = always},
    {.name = "symmetric_host",
     .format = "symmetric",
     .backend = kHost,
     .help = "threads over block rows of the lower triangle",
     .automatic = true,
     .make = make_symmetric_host,
     .estimate = estimate<symmetric_bytes, 75>,
     .sums_in_order = always},

    {.name = "crs_paper_host",
     .format = "csr",
     .backend = kHost,
     .help = "NT partial sums a row, as crs_paper",
     .policies = crs_paper_policies,
     .make = make_crs_paper_host},
    {.name = "coo_host", .format = "coo", .backend = kHost, .help = "threads over whole rows", .make = make_coo_host},
    {.name = "csc_host", .format = "csc", .backend = kHost, .help = "threads over rows", .make = make_csc_host},
    {.name = "ell_host", .format = "ell", .backend = kHost, .help = "threads over blocks of rows", .make = make_ell_host},
    {.name = "ell_r_host",
     .format = "ell_r",
     .backend = kHost,
     .help = "threads over blocks of rows",
     .make = make_ell_r_host},
    {.name = "hyb_host", .format = "hyb", .backend = kHost, .help = "ell_host, then coo_host", .make = make_hyb_host},
    {.name = "jds_host", .format = "jds", .backend = kHost, .help = "threads over blocks of rows", .make = make_jds_host},
    {.name = "jds_t_host",
     .format = "jds_t",
     .backend = kHost,
     .help = "threads over blocks of rows",
     .make = make_jds_t_host},
    {.name = "dia_host", .format = "dia", .backend = kHost, .help = "threads over blocks of rows", .make = make_dia_host},
    {.name = "sell_host", .format = "sell", .backend = kHost, .help = "threads over slices", .make = make_sell_host},
    {.name = "rbp_csr_host",
     .format = "rbp_csr",
     .backend = kHost,
     .help = "threads over rows",
     .make = make_rbp_csr_host,
     .sums_in_order = always},
    {.name = "rbp_ell_host",
     .format = "rbp_ell",
     .backend = kHost,
     .help = "threads over rows",
     .make = make_rbp_ell_host,
     .sums_in_order = always},
    {.name = "rbp_ell_r_host",
     .format = "rbp_ell_r",
     .backend = kHost,
     .help = "threads over rows",
     .make = make_rbp_ell_host,
     .sums_in_order = always},
    {.name = "fold_host", .format = "fold", .backend = kHost, .help = "threads over rows", .make = make_fold_host},
    {.name = "pkt_host", .format = "pkt", .backend = kHost, .help = "threads over rows", .make = make_pkt_host},

#ifdef SHARDMAT_HAVE_CUDA
    {.name = "packed",
     .format = "packed",
     .backend = kCuda,
     .help = "one thread a group of rows, a warp or several a slice",
     .automatic = true,
     .policies = packed_policies,
     .make = make_packed,
     .estimate = estimate<packed_estimate, 93, 32, 40>,
     .sums_in_order = packed_parts_in_order},
    {.name = "packed_small",
     .format = "packed",
     .backend = kCuda,
     .help = "several warps a slice, for matrices of few slices",
     .automatic = true,
     .policies = packed_small_policies,
     .supports = packed_small_supports,
     .make = make_packed_small,
     .estimate = packed_small_cost,
     .sums_in_order = packed_sums_in_order},
    {.name = "packed_stencil",
     .format = "packed",
     .backend = kCuda,
     .help = "several slices a warp, for rows that share their columns",
     .automatic = true,
     .policies = packed_stencil_policies,
     .supports = packed_stencil_supports,
     .make = make_packed_stencil,
     .estimate = packed_stencil_cost,
     .sums_in_order = packed_sums_in_order},
    {.name = "tiled",
     .format = "tiled",
     .backend = kCuda,
     .help = "a thread block a tile, x in shared memory, for scalar meshes",
     .automatic = true,
     .supports = tiled_supports,
     .make = make_tiled,
     .estimate = tiled_cost,
     .for_many_products = true},
    {.name = "tiers",
     .format = "tiers",
     .backend = kCuda,
     .help = "a tier's x in shared memory, sums added atomically, for power laws",
     .automatic = true,
     .policies = tiers_policies,
     .supports = tiers_supports,
     .make = make_tiers,
     .estimate = tiers_cost,
     .for_many_products = true},
    {.name = "csr_vector",
     .format = "csr",
     .backend = kCuda,
     .help = "1, 2, 4 … 32 threads a row",
     .automatic = true,
     .policies = csr_vector_policies,
     .make = make_csr_vector,
     .estimate = estimate<csr_bytes, 90, 32, 25>,
     .sums_in_order = csr_vector_in_order,
     .own_order = true},
    {.name = "csr_balanced",
     .format = "csr",
     .backend = kCuda,
     .help = "tiles of equal nonzeros and rows, for very uneven rows",
     .automatic = true,
     .policies = csr_balanced_policies,
     .make = make_csr_balanced,
     .estimate = estimate<csr_bytes, 55>},
    {.name = "csr_segmented",
     .format = "csr",
     .backend = kCuda,
     .help = "warps over equal stretches of nonzeros, for very uneven rows",
     .automatic = true,
     .policies = csr_segmented_policies,
     .supports = csr_segmented_supports,
     .make = make_csr_segmented,
     .estimate = estimate<csr_bytes, 78>,
     .sums_in_order = csr_segmented_in_order},
    {.name = "sell_cusparse",
     .format = "sell",
     .backend = kCuda,
     .help = "cuSPARSE sliced ELL",
     .automatic = true,
     .supports = sell_cusparse_supports,
     .make = make_sell_cusparse,
     .estimate = sell_cusparse_cost},
    {.name = "csr_cusparse",
     .format = "csr",
     .backend = kCuda,
     .help = "cuSPARSE CSR, algorithms 1 and 2",
     .automatic = true,
     .policies = csr_cusparse_policies,
     .supports = csr_cusparse_supports,
     .make = make_csr_cusparse,
     .estimate = estimate<csr_bytes, 72>,
     .yardstick = true},

    {.name = "csr_scalar",
     .format = "csr",
     .backend = kCuda,
     .help = "one thread a row",
     .policies = csr_scalar_policies,
     .make = make_csr_scalar},
    {.name = "crs_paper",
     .format = "csr",
     .backend = kCuda,
     .help = "NT threads a row, sums in shared memory",
     .policies = crs_paper_policies,
     .make = make_crs_paper},
    {.name = "coo",
     .format = "coo",
     .backend = kCuda,
     .help = "one thread a nonzero, atomic",
     .policies = thread_blocks,
     .make = make_coo},
    {.name = "csc",
     .format = "csc",
     .backend = kCuda,
     .help = "1, 2, 4 … 32 threads a column, atomic",
     .policies = csc_policies,
     .make = make_csc},
    {.name = "ell",
     .format = "ell",
     .backend = kCuda,
     .help = "one thread a row",
     .policies = thread_blocks,
     .make = make_ell},
    {.name = "ell_r",
     .format = "ell_r",
     .backend = kCuda,
     .help = "one thread a row",
     .policies = thread_blocks,
     .make = make_ell_r},
    {.name = "hyb", .format = "hyb", .backend = kCuda, .help = "ell, then coo", .policies = thread_blocks, .make = make_hyb},
    {.name = "jds",
     .format = "jds",
     .backend = kCuda,
     .help = "one thread a row",
     .policies = thread_blocks,
     .make = make_jds},
    {.name = "jds_t",
     .format = "jds_t",
     .backend = kCuda,
     .help = "one thread a row",
     .policies = thread_blocks,
     .make = make_jds_t},
    {.name = "dia",
     .format = "dia",
     .backend = kCuda,
     .help = "one thread a row",
     .policies = thread_blocks,
     .make = make_dia},
    {.name = "sell",
     .format = "sell",
     .backend = kCuda,
     .help = "one thread a row",
     .policies = thread_blocks,
     .make = make_sell},
    {.name = "bcsr",
     .format = "bcsr",
     .backend = kCuda,
     .help = "8, 16 or 32 threads a block row",
     .policies = bcsr_policies,
     .make = make_bcsr},
    {.name = "bcsr_cusparse",
     .format = "bcsr",
     .backend = kCuda,
     .help = "cuSPARSE BSR",
     .supports = bcsr_cusparse_supports,
     .make = make_bcsr_cusparse},
    {.name = "rbp_csr",
     .format = "rbp_csr",
     .backend = kCuda,
     .help = "one thread a row",
     .policies = rbp_policies,
     .make = make_rbp_csr,
     .sums_in_order = always,
     .with_tune = true},
    {.name = "rbp_ell",
     .format = "rbp_ell",
     .backend = kCuda,
     .help = "one thread a row",
     .policies = rbp_policies,
     .make = make_rbp_ell,
     .sums_in_order = always,
     .with_tune = true},
    {.name = "rbp_ell_r",
     .format = "rbp_ell_r",
     .backend = kCuda,
     .help = "one thread a row",
     .policies = rbp_policies,
     .make = make_rbp_ell,
     .sums_in_order = always,
     .with_tune = true},
    {.name = "fold",
     .format = "fold",
     .backend = kCuda,
     .help = "one thread a piece",
     .policies = fold_policies,
     .make = make_fold},
    {.name = "pkt",
     .format = "pkt",
     .backend = kCuda,
     .help = "a thread block a packet, x in shared memory",
     .make = make_pkt},
#endif
};

}  // namespace

std::span<const Format> formats() { return kFormats; }
std::span<const Kernel> kernels() { return kKernels; }

const Kernel& find_kernel(std::string_view name, Backend backend) { return find_in(kKernels, "kernel", name, backend); }

const Format& find_format(std::string_view name) {
  for (const Format& format : kFormats)
    if (format.name == name) return format;
  throw Error(ErrorKind::internal, fmt::format("there is no format '{}'", name));
}

bool stores(std::string_view format, StoredEntries entries) { return find_format(format).entries == entries; }

void require_stores(std::string_view kernel, std::string_view format, StoredEntries entries) {
  if (entries == StoredEntries::all || stores(format, entries)) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("kernel {} needs all entries, but symmetric storage is asked for; use kernel auto, or store all", kernel),
      "kernel");
}

void require_storage(Backend backend, StoredEntries entries) {
  if (entries == StoredEntries::all || backend == Backend::host) return;
  throw Error(ErrorKind::usage,
              fmt::format("symmetric storage is for the host; no kernel of the {} backend takes it", name(backend)),
              "storage");
}

const Format& format_to_update(std::string_view name) {
  const Format& format = find_format(name);
  if (format.update != nullptr) return format;
  throw Error(ErrorKind::usage, fmt::format("a matrix in format {} takes no new values; store it in another format", name));
}

const Format& reference_format() { return kFormats[0]; }

bool is_larger_than_csr(const Format& format, ConversionInput& input, const Policy& layout) {
  constexpr double kMostGrowth = 1.01;
  return format.name != reference_format().name &&
         static_cast<double>(format.bytes(input, layout)) > kMostGrowth * static_cast<double>(csr_bytes(input, {}));
}

std::int64_t largest_reasonable_bytes(ConversionInput& input) {
  constexpr std::int64_t kGrowth = 8, kSmall = std::int64_t{1} << 20;
  return std::max(kSmall, kGrowth * csr_bytes(input, {}));
}

std::shared_ptr<Storage> store(const Format& format, ConversionInput& input, const Policy& layout) {
  input.require_rows();
  const std::int64_t bytes = format.bytes(input, layout);
  if (bytes > largest_reasonable_bytes(input)) {
    const auto all = static_cast<double>(bytes), csr = static_cast<double>(csr_bytes(input, {}));
    throw Error(ErrorKind::resources,
                fmt::format("format {} does not suit this matrix: it would take {}, {:.0f} times as much as CSR ({}); the "
                            "longest row has {} nonzeros, the mean {:.1f}",
                            format.name, human_bytes(all), all / csr, human_bytes(csr), human_count(input.rows().max_row),
                            input.rows().mean_row));
  }
  std::shared_ptr<Storage> storage;
  if (format.convert == convert_csr) {
    storage = input.csr();  // one copy for all that need it
  } else {
    require_memory(input.stream().device(), bytes, fmt::format("the matrix in format {}", format.name));
    storage = format.convert(input, layout);
  }
  storage->format = format.name;
  storage->layout = layout;
  return storage;
}

void update_values(Storage& storage, const CsrView& matrix, Stream& stream) {
  if (matrix.rows != storage.rows || matrix.cols != storage.cols || matrix.nnz() != storage.nnz)
    throw Error(
        ErrorKind::input,
        fmt::format("new values need the pattern of the stored matrix ({} × {}, {} nonzeros), but come with {} × {}, {}",
                    storage.rows, storage.cols, storage.nnz, matrix.rows, matrix.cols, matrix.nnz()));
  ConversionInput input(matrix, storage.type, stream);
  format_to_update(storage.format).update(storage, input);
}

std::unique_ptr<Plan> make_plan(const Kernel& kernel, std::shared_ptr<Storage> storage, const Policy& policy,
                                Stream& stream) {
  auto plan = kernel.make(std::move(storage), policy, stream);
  plan->kernel = kernel.name;
  plan->policy = policy;
  return plan;
}

}  // namespace shardmat
