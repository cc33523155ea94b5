#include "kernels/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/cost_model.h"
#include "kernels/formats/bcsr.h"
#include "kernels/formats/coo.h"
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

namespace shardmat {
namespace {

std::vector<Policy> one_layout(ConversionInput&) { return {Policy{}}; }
std::vector<Policy> one_policy(const RowStatistics&) { return {Policy{}}; }
[[maybe_unused]] std::vector<Policy> thread_blocks(const RowStatistics&) {
  return {Policy{{"block_size", 128}}, Policy{{"block_size", 256}}};
}
bool any_matrix(const Storage&) { return true; }

constexpr Format kFormats[] = {
    {"csr", "compressed sparse rows, 32-bit columns", one_layout, csr_bytes, convert_csr, update_csr},
    {"coo", "row, column and value of each nonzero", one_layout, coo_bytes, convert_coo, update_coo},
    {"csc", "compressed sparse columns", one_layout, csc_bytes, convert_csc, update_csc},
    {"ell", "rows padded to the longest, transposed", one_layout, ell_bytes, convert_ell, update_ell},
    {"ell_r", "ell with row lengths", one_layout, ell_r_bytes, convert_ell_r, update_ell},
    {"hyb", "ell for the usual part of the rows, coo for the rest", hyb_layouts, hyb_bytes, convert_hyb, update_hyb},
    {"jds", "rows sorted by length, one after another", one_layout, jds_bytes, convert_jds, update_jds},
    {"jds_t", "rows sorted by length, stored by jagged diagonals", one_layout, jds_t_bytes, convert_jds_t, update_jds},
    {"dia", "whole diagonals, without columns", one_layout, dia_bytes, convert_dia, update_dia},
    {"packed", "runs and node blocks over slices of 32 rows, columns shared where they can be", packed_layouts, packed_bytes,
     convert_packed, update_packed},
    {"sell", "slices padded to their longest row (SELL-C-sigma)", sell_layouts, sell_bytes, convert_sell, update_sell},
    {"bcsr", "dense blocks with one column index each", bcsr_layouts, bcsr_bytes, convert_bcsr, update_bcsr},
    {"rbp_csr", "row block packing of CSR", one_layout, rbp_csr_bytes, convert_rbp_csr, update_rbp_csr},
    {"rbp_ell", "row block packing of ELL", one_layout, rbp_ell_bytes, convert_rbp_ell, update_rbp_ell},
    {"rbp_ell_r", "row block packing of ELL-R", one_layout, rbp_ell_r_bytes, convert_rbp_ell_r, update_rbp_ell},
    {"fold", "rows folded to one width, stored transposed", fold_layouts, fold_bytes, convert_fold, update_fold},
    {"pkt", "packets with 16-bit columns, and a CSR rest", pkt_layouts, pkt_bytes, convert_pkt, update_pkt},
};

// In the order of preference when nothing is measured.
constexpr Kernel kKernels[] = {
    {"csr_host", "csr", Backend::host, "threads over rows of equal nonzeros", true, csr_host_policies, csr_any, make_csr_host,
     estimate<csr_bytes, 80>},
    {"packed_host", "packed", Backend::host, "threads over slices", true, packed_host_policies, packed_any, make_packed_host,
     estimate<packed_bytes, 40>},
    {"coo_host", "coo", Backend::host, "threads over whole rows", false, one_policy, any_matrix, make_coo_host},
    {"csc_host", "csc", Backend::host, "threads over rows", false, one_policy, any_matrix, make_csc_host},
    {"ell_host", "ell", Backend::host, "threads over blocks of rows", false, one_policy, any_matrix, make_ell_host},
    {"ell_r_host", "ell_r", Backend::host, "threads over blocks of rows", false, one_policy, any_matrix, make_ell_r_host},
    {"hyb_host", "hyb", Backend::host, "ell_host, then coo_host", false, one_policy, any_matrix, make_hyb_host},
    {"jds_host", "jds", Backend::host, "threads over blocks of rows", false, one_policy, any_matrix, make_jds_host},
    {"jds_t_host", "jds_t", Backend::host, "threads over blocks of rows", false, one_policy, any_matrix, make_jds_t_host},
    {"dia_host", "dia", Backend::host, "threads over blocks of rows", false, one_policy, any_matrix, make_dia_host},
    {"sell_host", "sell", Backend::host, "threads over slices", false, one_policy, any_matrix, make_sell_host},
    {"bcsr_host", "bcsr", Backend::host, "threads over block rows", false, one_policy, any_matrix, make_bcsr_host},
    {"rbp_csr_host", "rbp_csr", Backend::host, "threads over rows", false, one_policy, any_matrix, make_rbp_csr_host},
    {"rbp_ell_host", "rbp_ell", Backend::host, "threads over rows", false, one_policy, any_matrix, make_rbp_ell_host},
    {"rbp_ell_r_host", "rbp_ell_r", Backend::host, "threads over rows", false, one_policy, any_matrix,
     make_rbp_ell_host},
    {"fold_host", "fold", Backend::host, "threads over rows", false, one_policy, any_matrix, make_fold_host},
    {"pkt_host", "pkt", Backend::host, "threads over rows", false, one_policy, any_matrix, make_pkt_host},
#ifdef SHARDMAT_HAVE_CUDA
    {"packed", "packed", Backend::cuda, "one thread a group of rows, a warp or several a slice", true, packed_policies,
     packed_any, make_packed, estimate<packed_bytes, 93, 32, 5>},
    {"csr_vector", "csr", Backend::cuda, "1, 2, 4 … 32 threads a row", true, csr_vector_policies, csr_any, make_csr_vector,
     estimate<csr_bytes, 90, 32, 25>},
    {"csr_balanced", "csr", Backend::cuda, "tiles of equal nonzeros and rows, for very uneven rows", true, csr_balanced_policies,
     csr_any, make_csr_balanced, estimate<csr_bytes, 80>},
    {"csr_segmented", "csr", Backend::cuda, "warps over equal stretches of nonzeros, for very uneven rows", true,
     csr_segmented_policies, csr_segmented_supports, make_csr_segmented, estimate<csr_bytes, 78>},
    {"csr_scalar", "csr", Backend::cuda, "one thread a row", false, csr_scalar_policies, csr_any, make_csr_scalar},
    {"csr_cusparse", "csr", Backend::cuda, "cuSPARSE CSR, algorithms 1 and 2", true, csr_cusparse_policies,
     csr_cusparse_supports, make_csr_cusparse, estimate<csr_bytes, 72>},
    {"coo", "coo", Backend::cuda, "one thread a nonzero, atomic", false, thread_blocks, any_matrix, make_coo},
    {"csc", "csc", Backend::cuda, "1, 2, 4 … 32 threads a column, atomic", false, csc_policies, any_matrix, make_csc},
    {"ell", "ell", Backend::cuda, "one thread a row", false, thread_blocks, any_matrix, make_ell},
    {"ell_r", "ell_r", Backend::cuda, "one thread a row", false, thread_blocks, any_matrix, make_ell_r},
    {"hyb", "hyb", Backend::cuda, "ell, then coo", false, thread_blocks, any_matrix, make_hyb},
    {"jds", "jds", Backend::cuda, "one thread a row", false, thread_blocks, any_matrix, make_jds},
    {"jds_t", "jds_t", Backend::cuda, "one thread a row", false, thread_blocks, any_matrix, make_jds_t},
    {"dia", "dia", Backend::cuda, "one thread a row", false, thread_blocks, any_matrix, make_dia},
    {"sell", "sell", Backend::cuda, "one thread a row", true, thread_blocks, any_matrix, make_sell},
    {"sell_cusparse", "sell", Backend::cuda, "cuSPARSE sliced ELL", true, one_policy, sell_cusparse_supports,
     make_sell_cusparse},
    {"bcsr", "bcsr", Backend::cuda, "8, 16 or 32 threads a block row", false, bcsr_policies, any_matrix, make_bcsr},
    {"bcsr_cusparse", "bcsr", Backend::cuda, "cuSPARSE BSR", true, one_policy, bcsr_cusparse_supports,
     make_bcsr_cusparse},
    {"rbp_csr", "rbp_csr", Backend::cuda, "one thread a row", false, rbp_policies, any_matrix, make_rbp_csr},
    {"rbp_ell", "rbp_ell", Backend::cuda, "one thread a row", false, rbp_policies, any_matrix, make_rbp_ell},
    {"rbp_ell_r", "rbp_ell_r", Backend::cuda, "one thread a row", false, rbp_policies, any_matrix, make_rbp_ell},
    {"fold", "fold", Backend::cuda, "one thread a piece", false, fold_policies, any_matrix, make_fold},
    {"pkt", "pkt", Backend::cuda, "a thread block a packet, x in shared memory", false, one_policy, any_matrix, make_pkt},
#endif
};

}  // namespace

std::span<const Format> formats() { return kFormats; }
std::span<const Kernel> kernels() { return kKernels; }

const Kernel& find_kernel(std::string_view name, Backend backend) {
  std::vector<std::string> here, elsewhere;
  for (const Kernel& kernel : kKernels) {
    if (kernel.name == name && kernel.backend == backend) return kernel;
    (kernel.backend == backend ? here : elsewhere).emplace_back(kernel.name);
  }
  if (std::find(elsewhere.begin(), elsewhere.end(), name) != elsewhere.end())
    throw Error(ErrorKind::usage, fmt::format("kernel '{}' does not run on the {} backend; there are {}", name,
                                              shardmat::name(backend), join_choices(here)));
  const std::string near = nearest(name, here);
  throw Error(ErrorKind::usage,
              fmt::format("there is no kernel '{}' on the {} backend{}; there are {}", name, shardmat::name(backend),
                          near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near), join_choices(here)));
}

const Format& find_format(std::string_view name) {
  for (const Format& format : kFormats)
    if (format.name == name) return format;
  throw Error(ErrorKind::internal, fmt::format("there is no format '{}'", name));
}

std::int64_t largest_reasonable_bytes(ConversionInput& input) {
  constexpr std::int64_t kGrowth = 8, kSmall = std::int64_t{1} << 20;
  return std::max(kSmall, kGrowth * csr_bytes(input, {}));
}

std::shared_ptr<Storage> store(const Format& format, ConversionInput& input, const Policy& layout) {
  const bool is_csr = format.convert == convert_csr;
  const std::int64_t bytes = format.bytes(input, layout), most = largest_reasonable_bytes(input);
  if (bytes > most)
    throw Error(ErrorKind::resources,
                fmt::format("format {} does not suit this matrix: it would take {}, {:.0f} times as much as CSR ({}); the "
                            "longest row has {} nonzeros, the mean {:.1f}. Use another kernel, or --kernel auto",
                            format.name, human_bytes(static_cast<double>(bytes)),
                            static_cast<double>(bytes) / static_cast<double>(csr_bytes(input, {})),
                            human_bytes(static_cast<double>(csr_bytes(input, {}))), human_count(input.rows().max_row),
                            input.rows().mean_row));
  std::shared_ptr<Storage> storage;
  if (is_csr) {
    storage = input.csr();  // one copy for all that need it
  } else {
    require_memory(input.stream().device(), bytes, fmt::format("the matrix in format {}", format.name));
    storage = format.convert(input, layout);
  }
  storage->format = format.name;
  storage->layout = layout;
  return storage;
}

void update_values(Plan& plan, const CsrView& matrix, Stream& stream) {
  Storage& storage = plan.storage();
  if (matrix.rows != storage.rows || matrix.cols != storage.cols || matrix.nnz() != storage.nnz)
    throw Error(ErrorKind::input,
                fmt::format("new values need the pattern of the plan's matrix ({} × {}, {} nonzeros), but come with {} × {}, {}",
                            storage.rows, storage.cols, storage.nnz, matrix.rows, matrix.cols, matrix.nnz()));
  ConversionInput input(matrix, storage.type, stream);
  find_format(storage.format).update(storage, input);
}

std::unique_ptr<Plan> make_plan(const Kernel& kernel, std::shared_ptr<Storage> storage, const Policy& policy,
                                Stream& stream) {
  auto plan = kernel.make(std::move(storage), policy, stream);
  plan->kernel = kernel.name;
  plan->policy = policy;
  return plan;
}

}  // namespace shardmat
