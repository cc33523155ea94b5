// The list of kernels for several right-hand sides; the formats are those of registry.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/choose/registry.h"
#include "kernels/conversion.h"
#include "kernels/spmm_plan.h"

namespace shardmat {

// What most entries of the list say.
inline std::vector<Policy> one_policy(const Storage&, const RightHandSides&) { return {Policy{}}; }
inline bool any_matrix(const Storage&, const RightHandSides&) { return true; }

struct SpmmKernel {
  std::string_view name;
  std::string_view format;  ///< registry.h
  Backend backend;
  std::string_view help;
  /// Policies worth measuring; the first is the default.
  std::vector<Policy> (*policies)(const Storage& storage, const RightHandSides& rhs) = one_policy;
  bool (*supports)(const Storage& storage, const RightHandSides& rhs) = any_matrix;
  /// Throws Error(usage) for a policy value that the kernel does not support. REQUIRES on the host: X and Y are row-major,
  /// if not any_order.
  std::unique_ptr<SpmmPlan> (*make)(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy& policy,
                                    Stream& stream);
  /// True if the automatic choice should measure the kernel on this matrix. Null: the kernel runs only if it is named.
  bool (*promising)(ConversionInput& input, const Policy& layout) = nullptr;
  bool with_tune = false;  ///< SpmmRequest::tune measures the kernel, although it otherwise runs only if it is named
  SumsInOrder sums_in_order = nullptr;  ///< null: no plan of this kernel sums in a fixed order
  bool any_order = false;               ///< on the host: takes column-major X and Y, too
  bool own_order = false;               ///< its order is another than that of other kernels of the format
};

std::span<const SpmmKernel> spmm_kernels();

/// As find_kernel().
const SpmmKernel& find_spmm_kernel(std::string_view name, Backend backend);
/// Throws as find_kernel() unless the name is "auto" or that of a kernel for one or for several right-hand sides.
void require_kernel(std::string_view name, Backend backend);

/// Calls kernel.make() and sets the plan's names. On the host column-major operands get row-major copies.
std::unique_ptr<SpmmPlan> make_spmm_plan(const SpmmKernel& kernel, std::shared_ptr<Storage> storage,
                                         const RightHandSides& rhs, const Policy& policy, Stream& stream);

}  // namespace shardmat
