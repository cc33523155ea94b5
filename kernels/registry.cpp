#include "kernels/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/formats/csr.h"

namespace shardmat {
namespace {

constexpr Format kFormats[] = {
    {"csr", "compressed sparse rows, 32-bit columns", csr_bytes, convert_csr},
};

// In the order of preference when nothing is measured.
constexpr Kernel kKernels[] = {
    {"csr_host", "csr", Backend::host, "threads over rows of equal nonzeros", csr_host_policies, csr_any, make_csr_host},
#ifdef SHARDMAT_HAVE_CUDA
    {"csr_vector", "csr", Backend::cuda, "1, 2, 4 … 32 threads a row", csr_vector_policies, csr_any, make_csr_vector},
    {"csr_scalar", "csr", Backend::cuda, "one thread a row", csr_scalar_policies, csr_any, make_csr_scalar},
    {"csr_cusparse", "csr", Backend::cuda, "cuSPARSE CSR, algorithms 1 and 2", csr_cusparse_policies,
     csr_cusparse_supports, make_csr_cusparse},
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

std::unique_ptr<Plan> make_plan(const Kernel& kernel, std::shared_ptr<const Storage> storage, const Policy& policy,
                                Stream& stream) {
  auto plan = kernel.make(std::move(storage), policy, stream);
  plan->kernel = kernel.name;
  plan->format = kernel.format;
  plan->policy = policy;
  return plan;
}

}  // namespace shardmat
