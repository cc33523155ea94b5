// cuSPARSE's SpMM on a batch: matrix by matrix with the best algorithm for each, in strides where all are of one size, and
// on the block-diagonal matrix of all. Every product has descriptors and a buffer of its own, preprocessed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>

#include "kernels/cuda/cusparse_plan.h"
#include "kernels/measure.h"
#include "tools/bench/batched_peers.h"

namespace shardmat::tools {
namespace {

using cuda::Scalar;
using Matrix = cuda::CusparseObject<cusparseSpMatDescr_t, &cuda::CusparseCalls::DestroySpMat>;
using DenseMatrix = cuda::CusparseObject<cusparseDnMatDescr_t, &cuda::CusparseCalls::DestroyDnMat>;

constexpr auto kPlain = CUSPARSE_OPERATION_NON_TRANSPOSE;
constexpr std::size_t kAlignment = 256;
constexpr std::int64_t kEntriesAligned = 4;  ///< arrays of a matrix begin at multiples of 16 bytes
constexpr std::size_t kMostMeasured = 256;   ///< matrices whose algorithm is measured, evenly spread
constexpr int kTogether = 20, kStreams = 8;

struct Algorithm {
  cusparseSpMMAlg_t id;
  const char* name;
};
constexpr Algorithm kAlgorithms[] = {
    {CUSPARSE_SPMM_CSR_ALG2, "ALG2"}, {CUSPARSE_SPMM_CSR_ALG3, "ALG3"}, {CUSPARSE_SPMM_ALG_DEFAULT, "default"}};
constexpr std::size_t kCount = std::size(kAlgorithms);

/// What the library has no kernel for, it calls an invalid value in places: Error(resources), as for what it does not
/// support.
void check(cusparseStatus_t status, const char* call) {
  if (status == CUSPARSE_STATUS_INVALID_VALUE)
    throw Error(ErrorKind::resources, fmt::format("cuSPARSE: {} in {}", cuda::cusparse().GetErrorString(status), call));
  cuda::check(status, call);
}

/// Algorithm 3 leaves a single column of Y as it was, and takes one matrix a call (asked for more, the library prints so).
bool takes(const Algorithm& algorithm, std::int64_t columns, int count) {
  return algorithm.id != CUSPARSE_SPMM_CSR_ALG3 || (columns > 1 && count == 1);
}

std::int64_t rounded_up(std::int64_t count) { return (count + kEntriesAligned - 1) / kEntriesAligned * kEntriesAligned; }
std::size_t rounded_up(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class CusparseHandle {
 public:
  explicit CusparseHandle(Stream& stream) : library_(stream.device()) { use(stream); }
  void use(Stream& stream) const {
    check(cuda::cusparse().SetStream(library_.handle, stream.native()), "cusparseSetStream");
  }
  cusparseHandle_t handle() const { return library_.handle; }

 private:
  cuda::CusparseLibrary library_;
};

/// Arrays on the device; several matrices of one size lie `…_stride` entries apart.
struct Csr {
  std::int64_t rows = 0, cols = 0, nnz = 0;
  const std::int32_t *row_ptr = nullptr, *col_idx = nullptr;
  const void* values = nullptr;
  int count = 1;
  std::int64_t row_ptr_stride = 0, entry_stride = 0;
};

/// One call of the library.
class Spmm {
 public:
  Spmm(const Csr& a, ValueType type, const void* x, void* y, std::int64_t columns, cusparseSpMMAlg_t algorithm)
      : type_(cuda::cuda_type(type)), algorithm_(algorithm) {
    check(cuda::cusparse().CreateCsr(&a_.handle, a.rows, a.cols, a.nnz, const_cast<std::int32_t*>(a.row_ptr),
                                     const_cast<std::int32_t*>(a.col_idx), const_cast<void*>(a.values), CUSPARSE_INDEX_32I,
                                     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type_),
          "cusparseCreateCsr");
    check(
        cuda::cusparse().CreateDnMat(&x_.handle, a.cols, columns, columns, const_cast<void*>(x), type_, CUSPARSE_ORDER_ROW),
        "cusparseCreateDnMat");
    check(cuda::cusparse().CreateDnMat(&y_.handle, a.rows, columns, columns, y, type_, CUSPARSE_ORDER_ROW),
          "cusparseCreateDnMat");
    if (a.count == 1) return;
    check(cuda::cusparse().CsrSetStridedBatch(a_.handle, a.count, a.row_ptr_stride, a.entry_stride),
          "cusparseCsrSetStridedBatch");
    check(cuda::cusparse().DnMatSetStridedBatch(x_.handle, a.count, a.cols * columns), "cusparseDnMatSetStridedBatch");
    check(cuda::cusparse().DnMatSetStridedBatch(y_.handle, a.count, a.rows * columns), "cusparseDnMatSetStridedBatch");
  }

  std::size_t buffer_bytes(const CusparseHandle& library) const {
    std::size_t bytes = 0;
    const Scalar one(1, type_), zero(0, type_);
    check(cuda::cusparse().SpMM_bufferSize(library.handle(), kPlain, kPlain, one.data(), a_.handle, x_.handle, zero.data(),
                                           y_.handle, type_, algorithm_, &bytes),
          "cusparseSpMM_bufferSize");
    return bytes + 16;
  }
  /// `buffer` belongs to this from now on.
  void preprocess(const CusparseHandle& library, void* buffer) {
    buffer_ = buffer;
    const Scalar one(1, type_), zero(0, type_);
    check(cuda::cusparse().SpMM_preprocess(library.handle(), kPlain, kPlain, one.data(), a_.handle, x_.handle, zero.data(),
                                           y_.handle, type_, algorithm_, buffer_),
          "cusparseSpMM_preprocess");
  }
  void run(const CusparseHandle& library) const {
    const Scalar one(1, type_), zero(0, type_);
    check(cuda::cusparse().SpMM(library.handle(), kPlain, kPlain, one.data(), a_.handle, x_.handle, zero.data(), y_.handle,
                                type_, algorithm_, buffer_),
          "cusparseSpMM");
  }

 private:
  cudaDataType type_;
  cusparseSpMMAlg_t algorithm_;
  void* buffer_ = nullptr;
  Matrix a_;
  DenseMatrix x_, y_;
};

/// A copy of the batch in which the row pointers of each matrix begin at 0 and its arrays at multiples of 16 bytes.
class SeparateMatrices {
 public:
  SeparateMatrices(const PeerInput& input, Stream& stream) {
    const BatchView& batch = input.host;
    const ValueType type = input.batch.type;
    std::int64_t pointers = 0, entries = 0;
    for (std::int64_t i = 0; i < batch.count(); ++i) {
      pointers += rounded_up(batch.rows_of(i) + 1);
      entries += rounded_up(batch.nnz_of(i));
    }
    const auto bytes = [](std::int64_t count, std::size_t size) {
      return rounded_up(static_cast<std::size_t>(count) * size);
    };
    const std::size_t columns_at = bytes(pointers, sizeof(std::int32_t));
    const std::size_t values_at = columns_at + bytes(entries, sizeof(std::int32_t));
    HostBuffer block;
    const std::size_t all = values_at + bytes(entries, size_of(type));
    require_memory(stream.device(), static_cast<std::int64_t>(all), "the batch for cuSPARSE");
    block.reserve(all, stream.device(), false);
    memory_ = Buffer(stream.device(), all);
    dispatch(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      lay_out(batch, block.as<std::int32_t>(), reinterpret_cast<std::int32_t*>(block.as<std::byte>() + columns_at),
              reinterpret_cast<T*>(block.as<std::byte>() + values_at));
    });
    copy_to_device(memory_.data(), block.data(), all, stream);
    stream.synchronize();
    // From places in the block to places on the device.
    for (std::size_t i = 0; i < of_.size(); ++i) {
      of_[i].row_ptr = memory_.as<std::int32_t>() + pointer_at_[i];
      of_[i].col_idx = reinterpret_cast<const std::int32_t*>(memory_.as<std::byte>() + columns_at) + entry_at_[i];
      of_[i].values = memory_.as<std::byte>() + values_at + static_cast<std::size_t>(entry_at_[i]) * size_of(type);
    }
  }

  const std::vector<Csr>& of() const { return of_; }

 private:
  template <class T>
  void lay_out(const BatchView& batch, std::int32_t* row_ptr, std::int32_t* col_idx, T* values) {
    std::int64_t pointer = 0, entry = 0;
    for (std::int64_t i = 0; i < batch.count(); ++i) {
      const auto first_row = static_cast<std::size_t>(batch.first_row[static_cast<std::size_t>(i)] - batch.first_row[0]);
      const std::int64_t rows = batch.rows_of(i), nnz = batch.nnz_of(i), start = batch.row_ptr[first_row];
      const auto first = static_cast<std::size_t>(start - batch.row_ptr[0]);
      for (std::int64_t row = 0; row <= rows; ++row)
        row_ptr[pointer + row] = static_cast<std::int32_t>(batch.row_ptr[first_row + static_cast<std::size_t>(row)] - start);
      for (std::int64_t k = 0; k < nnz; ++k) {
        col_idx[entry + k] = batch.col_idx[first + static_cast<std::size_t>(k)];
        values[entry + k] = static_cast<T>(batch.values[first + static_cast<std::size_t>(k)]);
      }
      of_.push_back({rows, batch.cols_of(i), nnz});
      pointer_at_.push_back(pointer);
      entry_at_.push_back(entry);
      pointer += rounded_up(rows + 1);
      entry += rounded_up(nnz);
    }
  }

  Buffer memory_;
  std::vector<Csr> of_;
  std::vector<std::int64_t> pointer_at_, entry_at_;
};

/// Products of all matrices, each with the algorithm that was the fastest on it. Of a batch of more than kMostMeasured
/// matrices so many are measured, and the others take what was the fastest on all of these together.
class EachMatrix {
 public:
  EachMatrix(const PeerInput& input, Stream& stream, bool in_graph)
      : input_(input), in_graph_(in_graph), matrices_(input, stream), library_(stream) {
    const std::vector<Csr>& of = matrices_.of();
    const std::vector<std::size_t> chosen = choose(stream);
    std::vector<std::size_t> buffer_at;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (of[i].rows == 0) continue;
      if (of[i].nnz == 0) {
        empty_.push_back(i);
        continue;
      }
      calls_.emplace_back(of[i], input.batch.type, x_of(i), y_of(i), input.columns, kAlgorithms[chosen[i]].id);
      buffer_at.push_back(bytes);
      bytes += rounded_up(calls_.back().buffer_bytes(library_));
    }
    require_memory(stream.device(), static_cast<std::int64_t>(bytes), "the buffers of cuSPARSE");
    buffers_ = Buffer(stream.device(), bytes);
    for (std::size_t i = 0; i < calls_.size(); ++i) calls_[i].preprocess(library_, buffers_.as<std::byte>() + buffer_at[i]);
    stream.synchronize();
  }

  std::size_t size() const { return calls_.size(); }
  void run(std::size_t i, const CusparseHandle& library) const { calls_[i].run(library); }
  /// Matrices without nonzeros, which the library does not take.
  void clear_empty(Stream& stream) const {
    for (const std::size_t i : empty_)
      fill_bytes(y_of(i), 0, static_cast<std::size_t>(matrices_.of()[i].rows * input_.columns) * size_of(input_.batch.type),
                 stream);
  }
  const std::string& choice() const { return choice_; }

 private:
  const void* x_of(std::size_t i) const {
    return static_cast<const std::byte*>(input_.x) +
           static_cast<std::size_t>(input_.batch.at.first_col[i] * input_.columns) * size_of(input_.batch.type);
  }
  void* y_of(std::size_t i) const {
    return static_cast<std::byte*>(input_.y) +
           static_cast<std::size_t>(input_.batch.at.first_row[i] * input_.columns) * size_of(input_.batch.type);
  }

  /// Seconds of one product of matrix `i`; infinite if the algorithm does not take it.
  double seconds(std::size_t i, const Algorithm& algorithm, Stream& stream) const {
    if (!takes(algorithm, input_.columns, 1)) return std::numeric_limits<double>::infinity();
    try {
      Spmm call(matrices_.of()[i], input_.batch.type, x_of(i), y_of(i), input_.columns, algorithm.id);
      const Buffer buffer(stream.device(), call.buffer_bytes(library_));
      call.preprocess(library_, buffer.data());
      const auto products = [&] {
        for (int k = 0; k < kTogether; ++k) call.run(library_);
      };
      TimingOptions timing;
      timing.repetitions = 3;
      timing.warm_ups = 1;
      if (!in_graph_) return time_work(products, stream, timing).median / kTogether;
      Graph graph(stream, products);
      return time_work([&] { graph.launch(stream); }, stream, timing).median / kTogether;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::resources) throw;
      return std::numeric_limits<double>::infinity();
    }
  }

  /// The algorithm of each matrix.
  std::vector<std::size_t> choose(Stream& stream) {
    const std::vector<Csr>& of = matrices_.of();
    const std::size_t step = (of.size() + kMostMeasured - 1) / kMostMeasured;
    std::array<double, kCount> sum{};
    std::array<std::size_t, kCount> taken{};
    std::vector<std::size_t> chosen(of.size(), kCount);
    for (std::size_t i = 0; i < of.size(); i += step) {
      if (of[i].rows == 0 || of[i].nnz == 0) continue;
      std::array<double, kCount> time{};
      for (std::size_t a = 0; a < kCount; ++a) sum[a] += time[a] = seconds(i, kAlgorithms[a], stream);
      chosen[i] = static_cast<std::size_t>(std::min_element(time.begin(), time.end()) - time.begin());
    }
    const auto best = static_cast<std::size_t>(std::min_element(sum.begin(), sum.end()) - sum.begin());
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (of[i].rows == 0 || of[i].nnz == 0) continue;
      if (chosen[i] == kCount) chosen[i] = best;
      ++taken[chosen[i]];
    }
    for (std::size_t a = 0; a < kCount; ++a)
      if (taken[a] > 0) choice_ += fmt::format("{}{} × {}", choice_.empty() ? "" : ", ", taken[a], kAlgorithms[a].name);
    return chosen;
  }

  PeerInput input_;
  bool in_graph_;
  SeparateMatrices matrices_;
  CusparseHandle library_;
  Buffer buffers_;
  std::deque<Spmm> calls_;
  std::vector<std::size_t> empty_;
  std::string choice_;
};

class OneByOne final : public BatchedPeer {
 public:
  OneByOne(std::shared_ptr<const EachMatrix> each, Stream& stream) : each_(std::move(each)), library_(stream) {
    choice = each_->choice();
  }

  void multiply(Stream& stream) override {
    library_.use(stream);
    each_->clear_empty(stream);
    for (std::size_t i = 0; i < each_->size(); ++i) each_->run(i, library_);
  }

 private:
  std::shared_ptr<const EachMatrix> each_;
  CusparseHandle library_;
};

/// Matrices side by side in several streams, which fork from the given one and join it.
class Forked final : public BatchedPeer {
 public:
  Forked(std::shared_ptr<const EachMatrix> each, Device device) : each_(std::move(each)), forked_(device) {
    for (int s = 0; s < kStreams; ++s) branches_.emplace_back(device);
    choice = fmt::format("{} streams: {}", kStreams, each_->choice());
  }

  void multiply(Stream& stream) override {
    each_->clear_empty(stream);
    forked_.record(stream);
    for (Branch& branch : branches_) branch.stream.wait_for(forked_);
    for (std::size_t i = 0; i < each_->size(); ++i) each_->run(i, branches_[i % kStreams].library);
    for (Branch& branch : branches_) {
      branch.done.record(branch.stream);
      stream.wait_for(branch.done);
    }
  }

 private:
  struct Branch {
    explicit Branch(Device device) : stream(device), library(stream), done(device) {}
    Stream stream;
    CusparseHandle library;
    Event done;
  };

  std::shared_ptr<const EachMatrix> each_;
  Event forked_;
  std::deque<Branch> branches_;
};

/// One call for the whole batch.
class OneCall final : public BatchedPeer {
 public:
  /// `arrays` owns what `a` points at.
  OneCall(const Csr& a, std::shared_ptr<const void> arrays, const PeerInput& input, const Algorithm& algorithm,
          Stream& stream)
      : arrays_(std::move(arrays)),
        library_(stream),
        call_(a, input.batch.type, input.x, input.y, input.columns, algorithm.id),
        buffer_(stream.device(), call_.buffer_bytes(library_)) {
    choice = algorithm.name;
    call_.preprocess(library_, buffer_.data());
    stream.synchronize();
  }

  void multiply(Stream& stream) override {
    library_.use(stream);
    call_.run(library_);
  }

 private:
  std::shared_ptr<const void> arrays_;
  CusparseHandle library_;
  Spmm call_;
  Buffer buffer_;
};

/// With every algorithm that takes the batch. Throws the last refusal if none does.
Peers one_call(const Csr& a, const std::shared_ptr<const void>& arrays, const PeerInput& input, Stream& stream) {
  Peers peers;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (!takes(algorithm, input.columns, a.count)) continue;
    try {
      auto peer = std::make_unique<OneCall>(a, arrays, input, algorithm, stream);
      peer->multiply(stream);  // some refusals come only now
      stream.synchronize();
      peers.push_back(std::move(peer));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::resources || (peers.empty() && &algorithm == std::end(kAlgorithms) - 1)) throw;
    }
  }
  return peers;
}

}  // namespace

Peers make_cusparse_plain(const PeerInput& input, Stream& stream) {
  Peers peers;
  peers.push_back(std::make_unique<OneByOne>(std::make_shared<const EachMatrix>(input, stream, false), stream));
  return peers;
}

Peers make_cusparse_graph(const PeerInput& input, Stream& stream) {
  const auto each = std::make_shared<const EachMatrix>(input, stream, true);
  Peers peers;
  peers.push_back(std::make_unique<OneByOne>(each, stream));
  peers.push_back(std::make_unique<Forked>(each, stream.device()));
  return peers;
}

Peers make_cusparse_strided(const PeerInput& input, Stream& stream) {
  const auto matrices = std::make_shared<const SeparateMatrices>(input, stream);
  Csr all = matrices->of().front();
  all.count = static_cast<int>(matrices->of().size());
  all.row_ptr_stride = rounded_up(all.rows + 1);
  all.entry_stride = rounded_up(all.nnz);
  return one_call(all, matrices, input, stream);
}

Peers make_cusparse_block_diagonal(const PeerInput& input, Stream& stream) {
  const BatchOffsets& at = input.batch.at;
  std::vector<std::int32_t> columns;
  columns.reserve(static_cast<std::size_t>(at.nnz()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(at.count()); ++i)
    for (std::int32_t k = at.first_entry[i]; k < at.first_entry[i + 1]; ++k)
      columns.push_back(at.first_col[i] + input.host.col_idx[static_cast<std::size_t>(k)]);
  const auto memory = std::make_shared<Buffer>(stream.device(), columns.size() * sizeof(std::int32_t));
  copy_to_device(memory->data(), columns.data(), memory->bytes(), stream);
  const Csr all{at.rows(), at.cols(), at.nnz(), input.batch.row_ptr, memory->as<std::int32_t>(), input.batch.values};
  return one_call(all, memory, input, stream);
}

}  // namespace shardmat::tools
