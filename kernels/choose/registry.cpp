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

std::vector<Policy> one_layout(ConversionInput&) { return {Policy{}}; }
std::vector<Policy> one_policy(const RowStatistics&) { return {Policy{}}; }
[[maybe_unused]] std::vector<Policy> thread_blocks(const RowStatistics&) {
  return {Policy{{"block_size", 128}}, Policy{{"block_size", 256}}};
}
bool any_matrix(const Storage&) { return true; }
bool always(ValueType, const Policy&, const Policy&) { return true; }
/// Lanes lie along the rows of X; several lanes on a group of rows would take more loads for the same values.
Policy packed_spmm_layout(ConversionInput& input) {
  Policy layout = packed_layouts(input).front();
  return layout.at("block") <= 3 ? layout.with("lanes=1") : layout;
}

constexpr Format kFormats[] = {
    {"csr", "compressed sparse rows, 32-bit columns", one_layout, csr_bytes, convert_csr, update_csr, true},
    {"coo", "row, column and value of each nonzero", one_layout, coo_bytes, convert_coo, update_coo},
    {"csc", "compressed sparse columns", one_layout, csc_bytes, convert_csc, update_csc},
    {"ell", "rows padded to the longest, transposed", one_layout, ell_bytes, convert_ell, update_ell},
    {"ell_r", "ell with row lengths", one_layout, ell_r_bytes, convert_ell_r, update_ell},
    {"hyb", "ell for the usual part of the rows, coo for the rest", hyb_layouts, hyb_bytes, convert_hyb, update_hyb},
    {"jds", "rows sorted by length, one after another", one_layout, jds_bytes, convert_jds, update_jds},
    {"jds_t", "rows sorted by length, stored by jagged diagonals", one_layout, jds_t_bytes, convert_jds_t, update_jds},
    {"dia", "whole diagonals, without columns", one_layout, dia_bytes, convert_dia, update_dia},

    {"sell", "slices padded to their longest row (SELL-C-sigma)", sell_layouts, sell_bytes, convert_sell, update_sell},
    {"bcsr", "dense blocks with one column index each", bcsr_layouts, bcsr_bytes, convert_bcsr, update_bcsr},
    {"rbp_csr", "row block packing of CSR", one_layout, rbp_csr_bytes, convert_rbp_csr, update_rbp_csr},
    {"rbp_ell", "row block packing of ELL", one_layout, rbp_ell_bytes, convert_rbp_ell, update_rbp_ell},
    {"rbp_ell_r", "row block packing of ELL-R", one_layout, rbp_ell_r_bytes, convert_rbp_ell_r, update_rbp_ell},
    {"fold", "rows folded to one width, stored transposed", fold_layouts, fold_bytes, convert_fold, update_fold},
    {"pkt", "packets with 16-bit columns, and a CSR rest", pkt_layouts, pkt_bytes, convert_pkt, update_pkt},
    {"packed", "node blocks and runs over slices, few columns", packed_layouts, packed_bytes, convert_packed, update_packed,
     false, packed_spmm_layout, StoredEntries::all, packed_ordered_layout},
    {"tiled", "tiles of neighbouring rows with 16-bit columns", tiled_layouts, tiled_bytes, convert_tiled, update_tiled},
    {"tiers", "columns sorted by use, in tiers with 16-bit columns, and a rest", tiers_layouts, tiers_bytes, convert_tiers,
     update_tiers},
    {"symmetric", "of mirrored equal entries one, in blocks", symmetric_layouts, symmetric_bytes, convert_symmetric, nullptr,
     false, nullptr, StoredEntries::half},
};

constexpr Backend kHost = Backend::host;
[[maybe_unused]] constexpr Backend kCuda = Backend::cuda;
constexpr bool kAuto = true, kNamed = false;  // what Kernel::automatic says

// In the order of preference when nothing is measured.
constexpr Kernel kKernels[] = {
    {"bcsr_host", "bcsr", kHost, "threads over block rows", kAuto, one_policy, any_matrix, make_bcsr_host,
     estimate<bcsr_estimate, 75>, false, always},
    {"packed_host", "packed", kHost, "threads over slices", kAuto, packed_host_policies, any_matrix, make_packed_host,
     packed_host_cost, false, always},
    {"csr_host", "csr", kHost, "threads over rows of equal nonzeros", kAuto, csr_host_policies, any_matrix, make_csr_host,
     csr_host_cost, true, always},
    {"symmetric_host", "symmetric", kHost, "threads over block rows of the lower triangle", kAuto, one_policy, any_matrix,
     make_symmetric_host, estimate<symmetric_bytes, 75>, false, always},

    {"crs_paper_host", "csr", kHost, "NT partial sums a row, as crs_paper", kNamed, crs_paper_policies, any_matrix,
     make_crs_paper_host},
    {"coo_host", "coo", kHost, "threads over whole rows", kNamed, one_policy, any_matrix, make_coo_host},
    {"csc_host", "csc", kHost, "threads over rows", kNamed, one_policy, any_matrix, make_csc_host},
    {"ell_host", "ell", kHost, "threads over blocks of rows", kNamed, one_policy, any_matrix, make_ell_host},
    {"ell_r_host", "ell_r", kHost, "threads over blocks of rows", kNamed, one_policy, any_matrix, make_ell_r_host},
    {"hyb_host", "hyb", kHost, "ell_host, then coo_host", kNamed, one_policy, any_matrix, make_hyb_host},
    {"jds_host", "jds", kHost, "threads over blocks of rows", kNamed, one_policy, any_matrix, make_jds_host},
    {"jds_t_host", "jds_t", kHost, "threads over blocks of rows", kNamed, one_policy, any_matrix, make_jds_t_host},
    {"dia_host", "dia", kHost, "threads over blocks of rows", kNamed, one_policy, any_matrix, make_dia_host},
    {"sell_host", "sell", kHost, "threads over slices", kNamed, one_policy, any_matrix, make_sell_host},
    {"rbp_csr_host", "rbp_csr", kHost, "threads over rows", kNamed, one_policy, any_matrix, make_rbp_csr_host},
    {"rbp_ell_host", "rbp_ell", kHost, "threads over rows", kNamed, one_policy, any_matrix, make_rbp_ell_host},
    {"rbp_ell_r_host", "rbp_ell_r", kHost, "threads over rows", kNamed, one_policy, any_matrix, make_rbp_ell_host},
    {"fold_host", "fold", kHost, "threads over rows", kNamed, one_policy, any_matrix, make_fold_host},
    {"pkt_host", "pkt", kHost, "threads over rows", kNamed, one_policy, any_matrix, make_pkt_host},

#ifdef SHARDMAT_HAVE_CUDA
    {"packed", "packed", kCuda, "one thread a group of rows, a warp or several a slice", kAuto, packed_policies, any_matrix,
     make_packed, estimate<packed_estimate, 93, 32, 40>, false, packed_parts_in_order},
    {"packed_small", "packed", kCuda, "several warps a slice, for matrices of few slices", kAuto, packed_small_policies,
     packed_small_supports, make_packed_small, packed_small_cost, false, packed_sums_in_order},
    {"packed_stencil", "packed", kCuda, "several slices a warp, for rows that share their columns", kAuto,
     packed_stencil_policies, packed_stencil_supports, make_packed_stencil, packed_stencil_cost, false,
     packed_sums_in_order},
    {"tiled", "tiled", kCuda, "a thread block a tile, x in shared memory, for scalar meshes", kAuto, one_policy,
     tiled_supports, make_tiled, tiled_cost, false, nullptr, true},
    {"tiers", "tiers", kCuda, "a tier's x in shared memory, sums added atomically, for power laws", kAuto, tiers_policies,
     tiers_supports, make_tiers, tiers_cost, false, nullptr, true},
    {"csr_vector", "csr", kCuda, "1, 2, 4 … 32 threads a row", kAuto, csr_vector_policies, any_matrix, make_csr_vector,
     estimate<csr_bytes, 90, 32, 25>},
    {"csr_balanced", "csr", kCuda, "tiles of equal nonzeros and rows, for very uneven rows", kAuto, csr_balanced_policies,
     any_matrix, make_csr_balanced, estimate<csr_bytes, 55>},
    {"csr_segmented", "csr", kCuda, "warps over equal stretches of nonzeros, for very uneven rows", kAuto,
     csr_segmented_policies, csr_segmented_supports, make_csr_segmented, estimate<csr_bytes, 78>, false,
     csr_segmented_in_order},
    {"sell_cusparse", "sell", kCuda, "cuSPARSE sliced ELL", kAuto, one_policy, sell_cusparse_supports, make_sell_cusparse,
     sell_cusparse_cost},
    {"csr_cusparse", "csr", kCuda, "cuSPARSE CSR, algorithms 1 and 2", kAuto, csr_cusparse_policies, csr_cusparse_supports,
     make_csr_cusparse, estimate<csr_bytes, 72>, true},

    {"csr_scalar", "csr", kCuda, "one thread a row", kNamed, csr_scalar_policies, any_matrix, make_csr_scalar},
    {"crs_paper", "csr", kCuda, "NT threads a row, sums in shared memory", kNamed, crs_paper_policies, any_matrix,
     make_crs_paper},
    {"coo", "coo", kCuda, "one thread a nonzero, atomic", kNamed, thread_blocks, any_matrix, make_coo},
    {"csc", "csc", kCuda, "1, 2, 4 … 32 threads a column, atomic", kNamed, csc_policies, any_matrix, make_csc},
    {"ell", "ell", kCuda, "one thread a row", kNamed, thread_blocks, any_matrix, make_ell},
    {"ell_r", "ell_r", kCuda, "one thread a row", kNamed, thread_blocks, any_matrix, make_ell_r},
    {"hyb", "hyb", kCuda, "ell, then coo", kNamed, thread_blocks, any_matrix, make_hyb},
    {"jds", "jds", kCuda, "one thread a row", kNamed, thread_blocks, any_matrix, make_jds},
    {"jds_t", "jds_t", kCuda, "one thread a row", kNamed, thread_blocks, any_matrix, make_jds_t},
    {"dia", "dia", kCuda, "one thread a row", kNamed, thread_blocks, any_matrix, make_dia},
    {"sell", "sell", kCuda, "one thread a row", kNamed, thread_blocks, any_matrix, make_sell},
    {"bcsr", "bcsr", kCuda, "8, 16 or 32 threads a block row", kNamed, bcsr_policies, any_matrix, make_bcsr},
    {"bcsr_cusparse", "bcsr", kCuda, "cuSPARSE BSR", kNamed, one_policy, bcsr_cusparse_supports, make_bcsr_cusparse},
    {"rbp_csr", "rbp_csr", kCuda, "one thread a row", kNamed, rbp_policies, any_matrix, make_rbp_csr},
    {"rbp_ell", "rbp_ell", kCuda, "one thread a row", kNamed, rbp_policies, any_matrix, make_rbp_ell},
    {"rbp_ell_r", "rbp_ell_r", kCuda, "one thread a row", kNamed, rbp_policies, any_matrix, make_rbp_ell},
    {"fold", "fold", kCuda, "one thread a piece", kNamed, fold_policies, any_matrix, make_fold},
    {"pkt", "pkt", kCuda, "a thread block a packet, x in shared memory", kNamed, one_policy, any_matrix, make_pkt},
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
