#include "runtime/solvers/attainable.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/memory_limits.h"
#include "runtime/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/solvers/null_space.h"

namespace shardmat {
namespace {

constexpr std::size_t kValuesAtOnce = 1 << 20;

/// The signs of an array of values, while it holds magnitudes.
template <class T>
class Signs {
 public:
  Signs(const Buffer& values, Stream& stream)
      : values_(values.as<T>()), count_(values.bytes() / sizeof(T)), negative_((count_ + kBits - 1) / kBits, 0) {
    for_each_chunk(stream, [&](std::size_t at, T& value) {
      negative_[at / kBits] |= static_cast<std::uint64_t>(std::signbit(value)) << at % kBits;
      value = std::abs(value);
    });
  }
  void give_back(Stream& stream) {
    for_each_chunk(stream, [&](std::size_t at, T& value) {
      if ((negative_[at / kBits] >> at % kBits & 1) != 0) value = -value;
    });
  }

 private:
  static constexpr std::size_t kBits = 64;

  template <class Change>
  void for_each_chunk(Stream& stream, const Change& change) {
    HostVector<T> chunk(std::min(kValuesAtOnce, count_));
    for (std::size_t first = 0; first < count_; first += kValuesAtOnce) {
      const std::size_t length = std::min(kValuesAtOnce, count_ - first);
      copy_to_host(chunk.data(), values_ + first, length * sizeof(T), stream);
      for (std::size_t i = 0; i < length; ++i) change(first + i, chunk[i]);
      copy_to_device(values_ + first, chunk.data(), length * sizeof(T), stream);
    }
  }

  T* values_;
  std::size_t count_;
  std::vector<std::uint64_t> negative_;
};

/// This rank's stored values are their magnitudes while an object lives.
template <class T>
class Magnitudes {
 public:
  Magnitudes(const Product& product, Stream& stream) : stream_(stream) {
    std::int64_t bits = 0;
    for_each_array(product, [&](const Buffer& array) { bits += static_cast<std::int64_t>(array.bytes() / sizeof(T)); });
    require_host_memory(bits / 8, "the signs of the matrix's values");
    for_each_array(product, [&](const Buffer& array) { signs_.emplace_back(array, stream); });
  }
  Magnitudes(const Magnitudes&) = delete;
  Magnitudes& operator=(const Magnitudes&) = delete;
  ~Magnitudes() {
    try {
      give_back();
    } catch (const std::exception&) {  // the device failed; so does all that follows, and says why
    }
  }
  /// The last array first: an array that came twice gets its first signs.
  void give_back() {
    while (!signs_.empty()) {
      signs_.back().give_back(stream_);
      signs_.pop_back();
    }
  }

 private:
  template <class Use>
  static void for_each_array(const Product& product, const Use& use) {
    for (const RowPlan& plan : product.row_plans())
      for (const Buffer* array : plan.storage().value_arrays()) use(*array);
  }

  Stream& stream_;
  std::vector<Signs<T>> signs_;
};

/// ‖·‖₂ of the columns of row-major values, over all ranks.
template <class T>
std::vector<double> norms_of(std::span<const T> values, std::size_t columns, Communicator& ranks) {
  std::vector<double> norms(columns, 0);
  for (std::size_t i = 0; i < values.size(); ++i) norms[i % columns] += static_cast<double>(values[i]) * values[i];
  ranks.all_reduce(std::span<double>(norms), Reduction::sum);
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

template <class T>
std::vector<double> norms_of(const DistributedVector& vector, Stream& stream) {
  HostVector<T> values(static_cast<std::size_t>(vector.local_rows() * vector.columns()));
  copy_to_host(values.data(), vector.view().data, values.size() * sizeof(T), stream);
  return norms_of(std::span<const T>(values.data(), values.size()), static_cast<std::size_t>(vector.columns()),
                  vector.matrix().context().communicator());
}

}  // namespace

double attainable_share(ValueType type) {
  return 2 * (type == ValueType::f64 ? std::numeric_limits<double>::epsilon()
                                     : static_cast<double>(std::numeric_limits<float>::epsilon()));
}

std::vector<double> norms_of_magnitudes(const Product& product, const DistributedVector& x, Stream& stream) {
  Communicator& ranks = product.matrix().context().communicator();
  DistributedVector magnitudes(product.matrix(), VectorLayout::rows, x.type(), x.columns()),
      y(product.matrix(), VectorLayout::rows, x.type(), x.columns());
  return dispatch(x.type(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    std::optional<Magnitudes<T>> without_signs;
    ranks.together([&] {
      HostVector<T> values(static_cast<std::size_t>(x.local_rows() * x.columns()));
      copy_to_host(values.data(), x.view().data, values.size() * sizeof(T), stream);
      for (T& value : values) value = std::abs(value);
      copy_to_device(magnitudes.view().data, values.data(), values.size() * sizeof(T), stream);
      stream.synchronize();
      without_signs.emplace(product, stream);
    });
    product.multiply(1, magnitudes.view(), 0, y.view(), stream);
    product.wait(stream);
    ranks.together([&] { without_signs->give_back(); });
    return norms_of<T>(y, stream);
  });
}

std::vector<double> norms_of_residual(const Product& product, const DistributedVector& b, const DistributedVector& x,
                                      const MeanRemover* project, Stream& stream) {
  DistributedVector r(product.matrix(), VectorLayout::rows, b.type(), b.columns());
  copy_on_device(r.view().data, b.view().data, product.y_bytes(), stream);
  product.multiply(-1, x.view(), 1, r.view(), stream);
  if (project != nullptr) (*project)(r.view(), stream);
  product.wait(stream);
  return dispatch(b.type(), [&]<class Tag>(Tag) { return norms_of<typename Tag::type>(r, stream); });
}

}  // namespace shardmat
