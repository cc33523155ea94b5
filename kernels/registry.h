// Every format and every kernel, each one line in registry.cpp; nothing else in the program knows them by name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/matrix/csr.h"
#include "kernels/matrix/statistics.h"
#include "kernels/plan.h"

namespace shardmat {

struct Format {
  std::string_view name;
  std::string_view help;
  /// Exact bytes of the stored matrix, known before anything is allocated.
  std::int64_t (*bytes)(const CsrView& matrix, ValueType type);
  /// Converts on the host and uploads. REQUIRES: a validated matrix with fewer than 2^31 columns.
  std::shared_ptr<const Storage> (*convert)(const CsrView& matrix, ValueType type, Stream& stream);
};

struct Kernel {
  std::string_view name;
  std::string_view format;
  Backend backend;
  std::string_view help;
  /// Policies worth measuring for such a matrix; the first is the model's choice, taken when nothing is measured.
  std::vector<Policy> (*policies)(const RowStatistics& rows);
  /// False if this kernel cannot take this matrix (a library's index limits).
  bool (*supports)(const Storage& storage);
  /// Throws Error(usage) for a policy value the kernel does not have.
  std::unique_ptr<Plan> (*make)(std::shared_ptr<const Storage> storage, const Policy& policy, Stream& stream);
};

std::span<const Format> formats();
std::span<const Kernel> kernels();

/// Throws Error(usage) with the nearest right name, or naming the backends that have the kernel.
const Kernel& find_kernel(std::string_view name, Backend backend);
const Format& find_format(std::string_view name);

/// kernel.make() with the names filled in.
std::unique_ptr<Plan> make_plan(const Kernel& kernel, std::shared_ptr<const Storage> storage, const Policy& policy,
                                Stream& stream);

}  // namespace shardmat
