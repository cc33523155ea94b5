#include "kernels/choose/transpose_list.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/choose/gather_columns.h"

namespace shardmat {

bool packed_transpose_host_supports(const Storage& storage);
std::unique_ptr<TransposePlan> make_bcsr_transpose_host(std::shared_ptr<const Storage> storage, const TransposeShape& shape);
std::unique_ptr<TransposePlan> make_csr_transpose_host(std::shared_ptr<const Storage> storage, const TransposeShape& shape);
std::unique_ptr<TransposePlan> make_packed_transpose_host(std::shared_ptr<const Storage> storage,
                                                          const TransposeShape& shape);

namespace {

struct TransposeKernel {
  std::string_view format;
  Backend backend;
  bool (*supports)(const Storage& storage) = [](const Storage&) { return true; };
  std::unique_ptr<TransposePlan> (*make)(std::shared_ptr<const Storage> storage, const TransposeShape& shape);
};

constexpr TransposeKernel kKernels[] = {
    {.format = "csr", .backend = Backend::host, .make = make_csr_transpose_host},
    {.format = "packed",
     .backend = Backend::host,
     .supports = packed_transpose_host_supports,
     .make = make_packed_transpose_host},
    {.format = "bcsr", .backend = Backend::host, .make = make_bcsr_transpose_host},
};

const TransposeKernel* find(const Storage& storage) {
  const auto* const found = std::find_if(std::begin(kKernels), std::end(kKernels), [&](const TransposeKernel& kernel) {
    return kernel.format == storage.format && kernel.backend == storage.device.backend && kernel.supports(storage);
  });
  return found == std::end(kKernels) ? nullptr : found;
}

}  // namespace

bool transposes_as_stored(const Storage& storage) { return find(storage) != nullptr; }

std::unique_ptr<TransposePlan> make_transpose_plan(std::shared_ptr<const Storage> storage, const TransposeShape& shape) {
  if (is_half(storage->type)) refuse_half(storage->type);
  const TransposeKernel* const kernel = find(*storage);
  if (kernel == nullptr)
    throw Error(ErrorKind::internal, "a transposed product of format " + storage->format + " was asked for without a map");
  return kernel->make(std::move(storage), shape);
}

std::unique_ptr<TransposePlan> make_transpose_plan(std::shared_ptr<const Storage> storage,
                                                   std::shared_ptr<const ColumnEntries> entries,
                                                   const TransposeShape& shape) {
  if (is_half(storage->type)) refuse_half(storage->type);
#ifdef SHARDMAT_HAVE_CUDA
  if (storage->device.backend == Backend::cuda)
    return make_gather_columns_cuda(std::move(storage), std::move(entries), shape);
#endif
  return make_gather_columns_host(std::move(storage), std::move(entries), shape);
}

}  // namespace shardmat
