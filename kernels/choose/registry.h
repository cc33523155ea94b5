// The lists of all formats and all kernels, each one line in registry.cpp. The tuners choose by the fields of these lines.
// Only format_guide.cpp knows formats by name, because it recommends formats for classes of matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/choose/choice.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

// What most entries of the lists say.
inline std::vector<Policy> one_layout(ConversionInput&) { return {Policy{}}; }
inline std::vector<Policy> one_policy(const RowStatistics&) { return {Policy{}}; }
inline bool any_matrix(const Storage&) { return true; }

struct Format {
  std::string_view name;
  std::string_view help;
  /// Layouts worth trying for this matrix (block sizes, slice heights); the first is the default. Never empty.
  std::vector<Policy> (*layouts)(ConversionInput& input) = one_layout;
  /// Exact bytes of the stored matrix, before it is allocated. Throws Error(usage) for an invalid layout.
  std::int64_t (*bytes)(ConversionInput& input, const Policy& layout);
  /// Stores the matrix in this format on the input's device.
  std::shared_ptr<Storage> (*convert)(ConversionInput& input, const Policy& layout);
  /// Writes the values of `input`, a matrix of the same pattern, into `storage` without another conversion. Value maps are
  /// made with it and need the rules of Storage::value_arrays(). Null: a stored matrix takes no new values.
  void (*update)(Storage& storage, ConversionInput& input) = nullptr;
  /// True if the format can store f16 and bf16.
  bool takes_halves = false;
  /// The layout for products with several right-hand sides; null: the first of layouts().
  Policy (*spmm_layout)(ConversionInput& input) = nullptr;
  /// Whether all entries or one triangle are stored. A request names one kind, and only its formats are candidates.
  StoredEntries entries = StoredEntries::all;
  /// The layout in which kernels for any number of right-hand sides sum in one order; null: the first of layouts().
  Policy (*ordered_layout)(ConversionInput& input) = nullptr;
};

struct Kernel {
  std::string_view name;
  std::string_view format;
  Backend backend;
  std::string_view help;
  /// True if the automatic choice may take the kernel. All other kernels run only if named: kernels of the literature that
  /// faster kernels have replaced, and kernels whose format is converted on the host, which takes longer than hundreds of
  /// products on a GPU. PlanRequest::tune measures them on the host, where a conversion is as fast as any.
  bool automatic = false;
  /// Policies worth measuring for such a matrix; the first is the default if nothing is measured.
  std::vector<Policy> (*policies)(const RowStatistics& rows) = one_policy;
  /// False if the kernel cannot multiply this matrix (e.g. index limits of a library).
  bool (*supports)(const Storage& storage) = any_matrix;
  /// Throws Error(usage) for a policy value that the kernel does not support.
  std::unique_ptr<Plan> (*make)(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
  /// The predicted cost of a product, in bytes of a copy (cost_model.h). If null, the automatic choice considers the kernel
  /// only when it measures all kernels.
  double (*estimate)(ConversionInput& input, const Policy& layout) = nullptr;
  /// True if the automatic choice always measures the kernel, so that its choice is never slower than this kernel.
  bool yardstick = false;
  SumsInOrder sums_in_order = nullptr;  ///< null: no plan of this kernel sums in a fixed order
  bool own_order = false;               ///< its order is another than that of other kernels of the format
  /// True if the automatic choice takes the kernel only if many products are expected (are_many()): its conversion takes
  /// long, and its format has no kernel for several right-hand sides.
  bool for_many_products = false;
  bool with_tune = false;  ///< PlanRequest::tune measures the kernel on GPUs, too, although it is not automatic
};

std::span<const Format> formats();
std::span<const Kernel> kernels();

/// For an unknown name throws Error(usage), which suggests the nearest name or says on which backend the kernel runs.
const Kernel& find_kernel(std::string_view name, Backend backend);
const Format& find_format(std::string_view name);
/// The format with its update(). Throws Error(usage) for a format that takes no new values.
const Format& format_to_update(std::string_view name);
/// True if the automatic choice may take the format for a request.
bool stores(std::string_view format, StoredEntries entries);
/// Throws Error(usage) for a named kernel whose format stores more than is asked for.
void require_stores(std::string_view kernel, std::string_view format, StoredEntries entries);
/// Throws Error(usage) if half of the entries are asked for on a backend whose kernels need all.
void require_storage(Backend backend, StoredEntries entries);
/// CSR. The bytes of other formats are compared with its bytes.
const Format& reference_format();
/// True if another format takes more bytes than CSR.
bool is_larger_than_csr(const Format& format, ConversionInput& input, const Policy& layout);

/// Largest size at which a format is accepted: several times the bytes of CSR, and more for small matrices.
std::int64_t largest_reasonable_bytes(ConversionInput& input);

/// Stores the matrix in a format. Throws Error(resources) with the bytes needed, before allocating, if the format needs more
/// than largest_reasonable_bytes() or the device lacks the memory, and as ConversionInput::require_rows().
std::shared_ptr<Storage> store(const Format& format, ConversionInput& input, const Policy& layout);

/// Writes new values on the same pattern into a stored matrix. All its plans use them from the next product in stream order.
/// Throws Error(input) if rows, cols or nnz differ.
void update_values(Storage& storage, const CsrView& matrix, Stream& stream);

/// Calls kernel.make() and sets the plan's names.
std::unique_ptr<Plan> make_plan(const Kernel& kernel, std::shared_ptr<Storage> storage, const Policy& policy,
                                Stream& stream);

}  // namespace shardmat
