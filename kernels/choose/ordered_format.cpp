#include "kernels/choose/ordered_format.h"

#include <fmt/format.h>

#include <limits>

#include "kernels/choose/spmm_registry.h"

namespace shardmat {
namespace {

/// What a product with one right-hand side is expected to cost in a format; infinite if the model says nothing.
double cost_of(const Format& format, ConversionInput& input) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  const Policy layout = ordered_layout(format, input);
  double least = kUnknown;
  for (const Kernel& kernel : kernels()) {
    const bool takes_part = kernel.backend == input.stream().device().backend && kernel.automatic &&
                            kernel.format == format.name && kernel.sums_in_order != nullptr && !kernel.own_order &&
                            kernel.estimate != nullptr;
    if (takes_part) least = std::min(least, kernel.estimate(input, layout));
  }
  return least;
}

/// True if the kernels for many right-hand sides suit the matrix in this format, too.
bool suits_many(const Format& format, ConversionInput& input) {
  for (const SpmmKernel& kernel : spmm_kernels())
    if (kernel.backend == input.stream().device().backend && kernel.format == format.name &&
        kernel.sums_in_order != nullptr && kernel.promising != nullptr &&
        kernel.promising(input, ordered_layout(format, input)))
      return true;
  return false;
}

bool grows(const Format& format, ConversionInput& input) {
  return format.entries != StoredEntries::half && is_larger_than_csr(format, input, ordered_layout(format, input));
}

/// On GPUs, ordered kernels for CSR with several columns take 1.1 to 4 times as long as those for packed rows, where these
/// suit.
bool is_last_resort(const Format& format, ConversionInput& input) {
  return input.stream().device().backend == Backend::cuda && format.name == reference_format().name;
}

}  // namespace

Policy ordered_layout(const Format& format, ConversionInput& input) {
  return format.ordered_layout != nullptr ? format.ordered_layout(input) : format.layouts(input).front();
}

const Format& ordered_format(ConversionInput& input, StoredEntries entries) {
  const Format* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Format& format : formats()) {
    if (format.entries != entries || !suits_many(format, input) || is_last_resort(format, input)) continue;
    const double cost = cost_of(format, input);
    if (cost >= least || grows(format, input)) continue;
    best = &format, least = cost;
  }
  return best != nullptr ? *best : reference_format();
}

Error not_ordered(std::string_view kernel, ValueType type) {
  return Error(ErrorKind::usage,
               fmt::format("kernel {} does not give a column the same bits for every number of right-hand sides in {}; use "
                           "another kernel, or f64 or f32",
                           kernel, name(type)),
               "same_bits");
}

}  // namespace shardmat
