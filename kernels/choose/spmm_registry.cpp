#include "kernels/choose/spmm_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"
#include "kernels/choose/kernel_list.h"
#include "kernels/choose/row_major_copies.h"
#include "kernels/formats/bcsr.h"
#include "kernels/formats/bcsr_spmm.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/csr_spmm.h"
#include "kernels/formats/packed_spmm.h"
#include "kernels/formats/rbp_spmm.h"
#include "kernels/formats/symmetric.h"

namespace shardmat {
namespace {

#ifdef SHARDMAT_HAVE_CUDA
bool not_half(const Storage& storage, const RightHandSides&) { return !is_half(storage.type); }
/// Single rows, and columns that fill 16 bytes: two of f32 do not.
bool stencil_takes(const Storage& storage, const RightHandSides& rhs) {
  return packed_stencil_supports(storage) && (rhs.count != 2 || storage.type == ValueType::f64);
}
#endif

/// Lanes walk along a row from end to end, so a row far longer than the others would keep the device waiting.
[[maybe_unused]] bool rows_are_even(ConversionInput& input, const Policy&) {
  const RowStatistics& rows = input.rows();
  return static_cast<double>(rows.max_row) <= std::max(256.0, 16 * rows.mean_row);
}
bool any_input(ConversionInput&, const Policy&) { return true; }
bool always(ValueType, const Policy&, const Policy&) { return true; }
#ifdef SHARDMAT_HAVE_CUDA
bool rows_are_alike(ConversionInput& input, const Policy& layout) {
  return std::isfinite(packed_stencil_cost(input, layout));
}
#endif

constexpr Backend kHost = Backend::host;

// In the order of preference when nothing is measured.
constexpr SpmmKernel kKernels[] = {
#ifdef SHARDMAT_HAVE_CUDA
    {.name = "packed",
     .format = "packed",
     .backend = Backend::cuda,
     .help = "lanes side by side on a row of X, values once for many columns",
     .policies = packed_spmm_policies,
     .make = make_packed_spmm,
     .promising = rows_are_even,
     .sums_in_order = packed_sums_in_order},
    {.name = "packed_stencil",
     .format = "packed",
     .backend = Backend::cuda,
     .help = "rows of X once for four rows of a stencil",
     .policies = packed_stencil_spmm_policies,
     .supports = stencil_takes,
     .make = make_packed_stencil_spmm,
     .promising = rows_are_alike,
     .sums_in_order = packed_sums_in_order},
    {.name = "csr_balanced",
     .format = "csr",
     .backend = Backend::cuda,
     .help = "equal numbers of nonzeros, whatever their rows",
     .policies = csr_balanced_spmm_policies,
     .make = make_csr_balanced_spmm,
     .promising = any_input,
     .sums_in_order = csr_balanced_spmm_in_order},
    {.name = "csr_segmented",
     .format = "csr",
     .backend = Backend::cuda,
     .help = "warps over equal stretches of nonzeros, for few right-hand sides",
     .policies = csr_segmented_spmm_policies,
     .supports = csr_segmented_spmm_supports,
     .make = make_csr_segmented_spmm,
     .promising = any_input,
     .sums_in_order = csr_segmented_spmm_in_order},
    {.name = "csr_cusparse",
     .format = "csr",
     .backend = Backend::cuda,
     .help = "cuSPARSE SpMM",
     .policies = csr_cusparse_spmm_policies,
     .supports = csr_cusparse_spmm_supports,
     .make = make_csr_cusparse_spmm,
     .promising = any_input},
    {.name = "csr_swa",
     .format = "csr",
     .backend = Backend::cuda,
     .help = "a sub-warp a row, lanes over the columns (Nagasaka et al.)",
     .supports = not_half,
     .make = make_csr_swa},
    {.name = "csr_vector",
     .format = "csr",
     .backend = Backend::cuda,
     .help = "1, 2, 4 … 32 threads a row, eight columns each",
     .policies = csr_vector_spmm_policies,
     .supports = not_half,
     .make = make_csr_vector_spmm,
     .with_tune = true,
     .sums_in_order = csr_vector_in_order,
     .own_order = true},
    {.name = "rbp_csr",
     .format = "rbp_csr",
     .backend = Backend::cuda,
     .help = "a sub-warp a row, columns of a run read once",
     .policies = rbp_spmm_policies,
     .make = make_rbp_csr_spmm,
     .with_tune = true,
     .sums_in_order = always},
    {.name = "rbp_ell",
     .format = "rbp_ell",
     .backend = Backend::cuda,
     .help = "a sub-warp a row, columns of a run read once",
     .policies = rbp_spmm_policies,
     .make = make_rbp_ell_spmm,
     .with_tune = true,
     .sums_in_order = always},
    {.name = "rbp_ell_r",
     .format = "rbp_ell_r",
     .backend = Backend::cuda,
     .help = "a sub-warp a row, columns of a run read once",
     .policies = rbp_spmm_policies,
     .make = make_rbp_ell_spmm,
     .with_tune = true,
     .sums_in_order = always},
#endif
    {.name = "bcsr_host",
     .format = "bcsr",
     .backend = kHost,
     .help = "threads over block rows",
     .make = make_bcsr_spmm_host,
     .promising = bcsr_is_full,
     .sums_in_order = always},
    {.name = "packed_host",
     .format = "packed",
     .backend = kHost,
     .help = "threads over slices",
     .supports = packed_spmm_host_supports,
     .make = make_packed_spmm_host,
     .promising = any_input,
     .sums_in_order = always},
    {.name = "packed_columns_host",
     .format = "packed",
     .backend = kHost,
     .help = "threads over slices, a few columns of X that lie apart",
     .supports = packed_columns_host_supports,
     .make = make_packed_columns_host,
     .promising = any_input,
     .sums_in_order = always,
     .any_order = true},
    {.name = "csr_host",
     .format = "csr",
     .backend = kHost,
     .help = "threads over rows of equal nonzeros",
     .make = make_csr_spmm_host,
     .promising = any_input,
     .sums_in_order = always},
    {.name = "symmetric_host",
     .format = "symmetric",
     .backend = kHost,
     .help = "threads over block rows of the lower triangle",
     .make = make_symmetric_spmm_host,
     .promising = any_input,
     .sums_in_order = always},
    {.name = "rbp_csr_host",
     .format = "rbp_csr",
     .backend = kHost,
     .help = "threads over rows, columns of a run read once",
     .make = make_rbp_csr_spmm_host,
     .with_tune = true,
     .sums_in_order = always},
    {.name = "rbp_ell_host",
     .format = "rbp_ell",
     .backend = kHost,
     .help = "threads over rows, columns of a run read once",
     .make = make_rbp_ell_spmm_host,
     .with_tune = true,
     .sums_in_order = always},
    {.name = "rbp_ell_r_host",
     .format = "rbp_ell_r",
     .backend = kHost,
     .help = "threads over rows, columns of a run read once",
     .make = make_rbp_ell_spmm_host,
     .with_tune = true,
     .sums_in_order = always},
};

}  // namespace

std::span<const SpmmKernel> spmm_kernels() { return kKernels; }

const SpmmKernel& find_spmm_kernel(std::string_view name, Backend backend) {
  return find_in(kKernels, "kernel for several right-hand sides", name, backend);
}

void require_kernel(std::string_view name, Backend backend) {
  struct Named {
    std::string_view name;
    Backend backend;
  };
  if (name == "auto") return;
  std::vector<Named> all;
  for (const Kernel& kernel : kernels()) all.push_back({kernel.name, kernel.backend});
  for (const SpmmKernel& kernel : spmm_kernels()) {
    const auto same = [&](const Named& one) { return one.name == kernel.name && one.backend == kernel.backend; };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back({kernel.name, kernel.backend});
  }
  find_in(all, "kernel", name, backend);
}

std::unique_ptr<SpmmPlan> make_spmm_plan(const SpmmKernel& kernel, std::shared_ptr<Storage> storage,
                                         const RightHandSides& rhs, const Policy& policy, Stream& stream) {
  require_count(rhs.count);
  const RightHandSides by_rows{rhs.count};
  const bool copies = kernel.backend == kHost && rhs != by_rows && !kernel.any_order;
  auto plan = kernel.make(std::move(storage), copies ? by_rows : rhs, policy, stream);
  if (copies) plan = with_row_major_copies(std::move(plan), rhs);
  plan->kernel = kernel.name;
  plan->policy = policy;
  return plan;
}

}  // namespace shardmat
