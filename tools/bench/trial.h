// One matrix in one type on one device, with everything that measuring kernels on it shares: its CSR on the device, x, and
// the product that is right.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kernels/choose/registry.h"
#include "kernels/conversion.h"
#include "kernels/measure.h"
#include "tools/bench/product_check.h"

namespace shardmat::tools {

struct TrialOptions {
  int repetitions = 21;
  CacheFlush* flush = nullptr;  ///< null: caches stay warm
  bool verify = true;
};

/// A matrix in one layout of a format, or the reason why there is none.
struct StoredMatrix {
  Policy layout;
  std::shared_ptr<Storage> storage;
  double seconds = 0;  ///< the conversion, without the upload of the CSR it starts from
  std::string refused;
};

/// One kernel with its tunables on one matrix.
struct KernelResult {
  std::string kernel, format, policy;  ///< policy: the tunables of format and kernel
  std::string refused;                 ///< why there is no time; empty if there is one
  Timing timing;
  double convert_seconds = 0;
  std::int64_t format_bytes = 0;  ///< of the stored matrix
  std::int64_t moved_bytes = 0;   ///< that a product must move at least
  ProductCheck::Outcome check;

  bool measured() const { return refused.empty(); }
  bool right() const { return check.wrong_rows == 0; }
};

class Trial {
 public:
  /// The matrix and the stream live as long as this. Uploads the CSR and x, and computes the right product.
  Trial(const CsrView& matrix, ValueType type, Stream& stream, const TrialOptions& options);

  ConversionInput& input() { return input_; }
  std::int64_t x_entries() const { return x_entries_; }

  /// Layouts of the format worth trying; the time that takes counts with its first conversion.
  std::vector<Policy> layouts(const Format& format);
  /// Refusals for want of memory or because the format does not suit are caught; other errors are not.
  StoredMatrix convert(const Format& format, const Policy& layout);
  /// Multiplies into a y of NaN, checks it, and times the product.
  KernelResult measure(const Kernel& kernel, const StoredMatrix& stored, const Policy& policy);
  KernelResult measure(const Plan& plan);

 private:
  ConversionInput input_;
  TrialOptions options_;
  HostVector<double> host_x_;
  Buffer x_, y_;
  std::optional<ProductCheck> check_;
  std::int64_t x_entries_ = 0;
  double layout_seconds_ = 0;
};

/// Distinct columns of a matrix.
std::int64_t count_touched_columns(const CsrView& matrix);

}  // namespace shardmat::tools
