// Every format and every kernel, each one line in registry.cpp. The tuners choose by the fields of these lines; of the code
// that chooses, only format_guide.cpp knows formats by name, because it recommends them for classes of matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

struct Format {
  std::string_view name;
  std::string_view help;
  /// Layouts worth trying for this matrix (block sizes, slice heights); the first is the model's choice. Never empty.
  std::vector<Policy> (*layouts)(ConversionInput& input);
  /// Exact bytes of the stored matrix, known before it is allocated. Throws Error(usage) for a layout that is not one.
  std::int64_t (*bytes)(ConversionInput& input, const Policy& layout);
  /// The matrix in this format on the input's device.
  std::shared_ptr<Storage> (*convert)(ConversionInput& input, const Policy& layout);
  /// Puts the values of `input`, a matrix of the same pattern, into `storage` without converting again. Value maps are made
  /// with it: Storage::value_arrays() says what they rely on.
  void (*update)(Storage& storage, ConversionInput& input);
  /// f16 and bf16 can be stored.
  bool takes_halves = false;
  /// The layout for products of many right-hand sides; null: the first of layouts().
  Policy (*spmm_layout)(ConversionInput& input) = nullptr;
};

struct Kernel {
  std::string_view name;
  std::string_view format;
  Backend backend;
  std::string_view help;
  /// True if --kernel auto may choose it. Others run when named: kernels of the literature that others have overtaken, and
  /// those whose formats are converted on the host, which takes longer than hundreds of products on a GPU.
  bool automatic;
  /// Policies worth measuring for such a matrix; the first is the model's choice, taken when nothing is measured.
  std::vector<Policy> (*policies)(const RowStatistics& rows);
  /// False if this kernel cannot take this matrix (a library's index limits).
  bool (*supports)(const Storage& storage);
  /// Throws Error(usage) for a policy value the kernel does not have.
  std::unique_ptr<Plan> (*make)(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
  /// What a product is expected to cost, in bytes of a copy (cost_model.h). Without it --kernel auto does not consider the
  /// kernel, unless --measure asks for all.
  double (*estimate)(ConversionInput& input, const Policy& layout) = nullptr;
  /// --kernel auto always measures it, so that no choice is slower than it.
  bool yardstick = false;
};

std::span<const Format> formats();
std::span<const Kernel> kernels();

/// Throws Error(usage) with the nearest right name, or naming the backends that have the kernel.
const Kernel& find_kernel(std::string_view name, Backend backend);
const Format& find_format(std::string_view name);
/// Compressed sparse rows, with whose bytes other formats are compared.
const Format& reference_format();

/// Bytes above which a format is refused as unsuitable: several times CSR's. Small matrices may grow by more.
std::int64_t largest_reasonable_bytes(ConversionInput& input);

/// The matrix in a format. Throws Error(resources) before allocating, with the bytes needed, if the format blows this matrix
/// up (above largest_reasonable_bytes) or the device has not the memory.
std::shared_ptr<Storage> store(const Format& format, ConversionInput& input, const Policy& layout);

/// Puts new values on the same pattern into a stored matrix; all plans on it multiply with them from the next product in
/// stream order. Throws Error(input) if rows, cols or nnz differ.
void update_values(Storage& storage, const CsrView& matrix, Stream& stream);

/// kernel.make() with the names filled in.
std::unique_ptr<Plan> make_plan(const Kernel& kernel, std::shared_ptr<Storage> storage, const Policy& policy,
                                Stream& stream);

}  // namespace shardmat
