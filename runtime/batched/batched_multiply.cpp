#include "runtime/batched/batched_multiply.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include "comm/long_wait.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/timer.h"
#include "partition/batched/batch_file.h"
#include "partition/batched/batch_list.h"
#include "partition/batched/batch_source.h"
#include "partition/vectors/vector_file.h"
#include "runtime/base/break_on_error.h"
#include "runtime/batched/batched_chunk.h"
#include "runtime/batched/batched_stream.h"
#include "runtime/batched/batched_verify.h"
#include "runtime/context/context_scope.h"
#include "runtime/source/hdf5_on_ranks.h"

namespace shardmat {
namespace {

constexpr int kResultTag = 1;
constexpr std::int64_t kChunkBytes = 256'000'000;

/// Where each matrix of the whole batch begins, as it is multiplied, and what it moves.
class Extent {
 public:
  Extent(const BatchSource& source, const BatchedOptions& o) {
    require_host_memory(100 * source.count(), source.name().c_str());  // the sizes, and the sums below
    BatchSizes sizes = source.sizes(0, source.count());
    if (o.transpose) std::swap(sizes.rows, sizes.cols);
    const auto value = static_cast<std::int64_t>(size_of(o.type)),
               sum = static_cast<std::int64_t>(size_of(sum_type(o.type)));
    for (std::size_t i = 0; i < sizes.rows.size(); ++i) {
      rows_.push_back(rows_.back() + sizes.rows[i]);
      cols_.push_back(cols_.back() + sizes.cols[i]);
      nnz_.push_back(nnz_.back() + sizes.nnz[i]);
      bytes_.push_back(bytes_.back() + sizes.nnz[i] * (4 + value) + sizes.rows[i] * 4 +
                       o.columns * (sizes.cols[i] * value + sizes.rows[i] * sum));
      least_rows = i == 0 ? sizes.rows[i] : std::min(least_rows, sizes.rows[i]);
      most_rows = std::max(most_rows, sizes.rows[i]);
      most_cols = std::max(most_cols, sizes.cols[i]);
    }
  }

  BatchRange range(std::int64_t begin, std::int64_t end) const {
    const auto b = static_cast<std::size_t>(begin), e = static_cast<std::size_t>(end);
    return {
        begin, end, rows_[b], cols_[b], rows_[e] - rows_[b], cols_[e] - cols_[b], nnz_[e] - nnz_[b], bytes_[e] - bytes_[b]};
  }
  std::int64_t rows() const { return rows_.back(); }
  std::int64_t cols() const { return cols_.back(); }

  /// One range a rank, of nearly equal bytes.
  std::vector<BatchRange> shares(int ranks) const {
    std::vector<BatchRange> shares;
    std::int64_t begin = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto target = static_cast<std::int64_t>(static_cast<double>(bytes_.back()) / ranks * (rank + 1));
      auto at = std::lower_bound(bytes_.begin() + begin, bytes_.end(), target);
      if (at != bytes_.begin() + begin && (at == bytes_.end() || target - at[-1] < *at - target)) --at;
      const std::int64_t end = rank == ranks - 1 ? std::ssize(bytes_) - 1 : at - bytes_.begin();
      shares.push_back(range(begin, end));
      begin = end;
    }
    return shares;
  }
  /// Ranges of at most so many bytes that 32-bit offsets reach; a larger matrix is one of its own.
  std::vector<BatchRange> chunks(std::int64_t most) const {
    std::vector<BatchRange> chunks;
    const std::int64_t count = std::ssize(rows_) - 1;
    for (std::int64_t begin = 0; begin < count;) {
      std::int64_t end = begin + 1;
      while (end < count && range(begin, end + 1).bytes <= most && fits(begin, end + 1)) ++end;
      chunks.push_back(range(begin, end));
      begin = end;
    }
    return chunks;
  }
  bool fits(std::int64_t begin, std::int64_t end) const {
    const auto b = static_cast<std::size_t>(begin), e = static_cast<std::size_t>(end);
    return std::max({rows_[e] - rows_[b], cols_[e] - cols_[b], nnz_[e] - nnz_[b]}) <= BatchOffsets::most;
  }

  std::int64_t least_rows = 0, most_rows = 0, most_cols = 0;

 private:
  std::vector<std::int64_t> rows_{0}, cols_{0}, nnz_{0}, bytes_{0};
};

class BatchedRun {
 public:
  BatchedRun(Context& context, const BatchedOptions& options)
      : context_(context), ranks_(context.communicator()), o_(options) {}

  BatchedReport operator()() {
    open();
    place();
    if (report_.streaming) stream();
    else resident();
    describe();
    return std::move(report_);
  }

 private:
  void open() {
    ranks_.run_agreed([&] {
      if (o_.alpha == 0) throw Error(ErrorKind::usage, "alpha = 0 leaves nothing of the product", "alpha");
      if (!o_.output.empty()) check_vector_suffix(o_.output);
      if (!o_.output.empty() && ranks_.rank() == 0) check_vector_writable(o_.output);
    });
    if (accepts_batch_file(o_.batch)) describe_on_all_ranks(Hdf5Input{o_.batch, BatchFile::objects()}, ranks_);
    describe_on_all_ranks(VectorFile::hdf5_input(o_.x, "x"), ranks_);
    describe_on_all_ranks(VectorFile::hdf5_input(o_.bias, "bias"), ranks_);
    const LongWait wait(ranks_);  // every rank reads the sizes of all matrices, some from slower disks
    ranks_.run_agreed([&] {
      source_ = transformed(open_batch(o_.batch, o_.edges), o_.graphs);
      extent_ = std::make_unique<Extent>(*source_, o_);
      x_ = open_vector(o_.x, "x", extent_->cols(), o_.seed, o_.columns);
      chunk_options_ = {source_.get(), x_.get(), o_.transpose, o_.columns, o_.type, o_.format};
      load_bias();
    });
  }

  void load_bias() {
    if (o_.bias.empty()) return;
    bias_ = open_vector(o_.bias, "bias", o_.columns, o_.seed + 1)->read(0, o_.columns);
    bias_on_device_ = Buffer(context_.device(), bias_.size() * size_of(sum_type(o_.type)));
    to_device(bias_on_device_.data(), bias_, sum_type(o_.type), context_.stream());
  }

  Epilogue epilogue() const { return {o_.alpha, 0, bias_.empty() ? nullptr : bias_on_device_.data(), o_.relu}; }

  /// Which matrices this rank multiplies, and whether they stay on its device.
  void place() {
    const std::vector<BatchRange> shares = extent_->shares(ranks_.size());
    const BatchRange& mine = shares[static_cast<std::size_t>(ranks_.rank())];
    // The host holds matrices and X in f64, too, transposes and coordinates beside them, and all as it goes to the device.
    const std::int64_t copies = 1 + (o_.transpose ? 2 : 0) + (o_.format == BatchFormat::coo ? 2 : 0);
    const std::int64_t host_bytes = 8 * o_.columns * mine.cols + copies * (12 * mine.nnz + 8 * mine.rows) + 2 * mine.bytes;
    const bool resident = !o_.stream && extent_->fits(mine.begin, mine.end) &&
                          mine.bytes + mine.bytes / 8 < available_memory(context_.device()) &&
                          host_bytes < share_of_host_memory();
    const bool all_resident = ranks_.all_reduce(resident ? 1 : 0, Reduction::min) == 1;
    if (all_resident) {
      mine_ = {mine};
      rounds_ = 1;
    } else {
      const std::vector<BatchRange> chunks = extent_->chunks(o_.chunk_bytes > 0 ? o_.chunk_bytes : kChunkBytes);
      for (std::size_t i = static_cast<std::size_t>(ranks_.rank()); i < chunks.size();
           i += static_cast<std::size_t>(ranks_.size()))
        mine_.push_back(chunks[i]);
      rounds_ = (std::ssize(chunks) + ranks_.size() - 1) / ranks_.size();
      report_.streaming.emplace();
      report_.streaming->chunks = std::ssize(chunks);
    }
    if (!o_.output.empty())
      ranks_.run_agreed([&] {
        if (ranks_.rank() == 0)
          writer_.emplace(o_.output, "y", extent_->rows(), sum_type(o_.type) == ValueType::f32, o_.columns);
      });
    if (o_.verify) report_.verification.emplace();
  }

  void resident() {
    BatchedChunk chunk(context_.device(), false);
    Stream& stream = context_.stream();
    const LongWait wait(ranks_);  // ranks with smaller matrices; rank 0 writes what the others have
    const Timer loading;
    ranks_.run_agreed([&] {
      chunk.read(mine_.front(), chunk_options_, files_);
      chunk.upload(stream);
      stream.synchronize();
    });
    report_.loading = over_ranks(loading.seconds(), ranks_);
    ChosenBatchedPlan chosen;
    ranks_.run_agreed([&] {
      chosen = choose_batched_plan(chunk.batch(), o_.columns, o_.plan, stream);
      chosen.plan->multiply(chunk.x(), o_.columns, chunk.y(), o_.columns, epilogue(), stream);
      chunk.download(stream);
      stream.synchronize();
    });
    note(chosen);
    report_.device_bytes =
        over_ranks(static_cast<double>(chunk.device_bytes()) + static_cast<double>(chosen.plan->work_bytes()), ranks_);
    check(&chunk);
    if (passed()) time(chunk, *chosen.plan);
    if (passed() && writer_asked()) deliver(&chunk);
    finish_output();
  }

  void time(const BatchedChunk& chunk, const BatchedPlan& plan) {
    report_.copy_bandwidth = over_ranks(ranks_.run_agreed([&] { return context_.copy_bandwidth(); }), ranks_);
    if (o_.iterations == 0) return;
    ranks_.barrier();
    const Timing mine = ranks_.run_agreed([&] {
      TimingOptions timing;
      timing.repetitions = static_cast<int>(std::min<std::int64_t>(o_.iterations, 100'000));
      return time_batched(plan, chunk.x(), o_.columns, chunk.y(), o_.columns, epilogue(), context_.stream(), timing);
    });
    IterationTimes& t = report_.product;
    t.iterations = o_.iterations;
    t.median = ranks_.all_reduce(mine.median, Reduction::max);
    t.min = ranks_.all_reduce(mine.min, Reduction::max);
    t.max = ranks_.all_reduce(mine.max, Reduction::max);
    t.of_ranks = over_ranks(mine.median, ranks_);
    report_.bandwidth = over_ranks(mine.median > 0 ? static_cast<double>(mine_.front().bytes) / mine.median : 0, ranks_);
    if (t.median > 0)
      report_.gflops = 2e-9 * static_cast<double>(source_->nnz()) * static_cast<double>(o_.columns) / t.median;
  }

  void stream() {
    BatchedStreaming& figures = *report_.streaming;
    const LongWait wait(ranks_);
    const Timer total;
    const auto started = ranks_.run_agreed([&] {
      return std::make_unique<BatchedStream>(context_, mine_, chunk_options_, o_.columns, o_.plan, epilogue(), files_);
    });
    BatchedStream& chunks = *started;
    for (std::int64_t round = 0; round < rounds_; ++round) {
      const bool any = round < std::ssize(mine_);
      BatchedChunk* chunk = ranks_.run_agreed([&] { return any ? chunks.next() : nullptr; });
      const Timer delivering;
      check(chunk);
      if (!passed()) break;
      if (writer_asked()) deliver(chunk);
      figures.deliver += delivering.seconds();
      if (chunk != nullptr) chunks.give_back(*chunk);
      report(o_.progress, "multiplying", round + 1, rounds_);
    }
    figures.total = ranks_.all_reduce(total.seconds(), Reduction::max);
    finish_output();
    figures.read = ranks_.all_reduce(chunks.read_seconds(), Reduction::max);
    figures.product = ranks_.all_reduce(chunks.device_seconds(), Reduction::max);
    figures.deliver = ranks_.all_reduce(figures.deliver, Reduction::max);
    figures.other_kernels = ranks_.all_reduce(chunks.other_kernels(), Reduction::sum);
    if (const ChosenBatchedPlan* chosen = chunks.chosen()) note(*chosen);
    report_.device_bytes = over_ranks(static_cast<double>(chunks.device_bytes()), ranks_);
    if (figures.total > 0)
      report_.gflops = 2e-9 * static_cast<double>(source_->nnz()) * static_cast<double>(o_.columns) / figures.total;
  }

  bool writer_asked() const { return !o_.output.empty(); }
  bool passed() const { return !report_.verification || report_.verification->passed; }

  /// A chunk of every rank, null where there is none. After it all ranks know whether all passed; the worst row is found at
  /// the end.
  void check(const BatchedChunk* chunk) {
    if (!report_.verification) return;
    ranks_.run_agreed([&] {
      if (chunk != nullptr) merge(*report_.verification, verify_chunk(*chunk, o_, bias_));
    });
    report_.verification->passed = ranks_.all_reduce(report_.verification->passed ? 1 : 0, Reduction::min) == 1;
  }

  /// The results of one chunk of every rank, null where there is none, to the file in the order of ranks.
  void deliver(const BatchedChunk* chunk) {
    const std::int64_t rows = chunk == nullptr ? 0 : chunk->range().rows;
    const std::vector<std::int64_t> all = ranks_.all_gather(rows);
    const std::size_t row_bytes = static_cast<std::size_t>(o_.columns) * size_of(sum_type(o_.type));
    HostVector<std::byte> received;
    ranks_.run_agreed([&] {
      if (ranks_.rank() == 0 && all.size() > 1)
        received.resize(static_cast<std::size_t>(*std::max_element(all.begin() + 1, all.end())) * row_bytes);
    });
    if (ranks_.rank() != 0) {
      if (rows > 0) ranks_.send(chunk->result(), chunk->result_bytes(), 0, kResultTag);
    } else {
      std::exception_ptr failed;  // the others' messages are still taken
      for (int rank = 0; rank < ranks_.size(); ++rank) {
        const std::int64_t count = all[static_cast<std::size_t>(rank)];
        if (count == 0) continue;
        const void* from = rank == 0 ? chunk->result() : nullptr;
        if (rank > 0) {
          ranks_.receive(received.data(), static_cast<std::size_t>(count) * row_bytes, rank, kResultTag);
          from = received.data();
        }
        try {
          if (!failed) append(from, count);
        } catch (...) {
          failed = std::current_exception();
        }
      }
      ranks_.agree(failed);
      return;
    }
    ranks_.agree(nullptr);
  }

  void append(const void* results, std::int64_t rows) {
    constexpr std::int64_t kAtOnce = 1 << 20;  // entries
    const std::lock_guard lock(files_);
    dispatch(sum_type(o_.type), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = static_cast<const T*>(results);
      const std::int64_t rows_at_once = std::max<std::int64_t>(1, kAtOnce / o_.columns);
      for (std::int64_t row = 0; row < rows; row += rows_at_once) {
        const std::int64_t count = std::min(rows_at_once, rows - row);
        const HostVector<double> part(from + row * o_.columns, from + (row + count) * o_.columns);
        writer_->append(part.data(), count);
      }
    });
  }

  void finish_output() {
    if (!writer_asked() || !passed()) return;
    ranks_.run_agreed([&] {
      if (writer_) writer_->finish();
    });
    report_.output = o_.output;
  }

  void note(const ChosenBatchedPlan& chosen) {
    report_.kernel = chosen.plan->kernel;
    report_.policy = chosen.plan->policy.text();
    report_.why = chosen.why;
    report_.measurements = chosen.measurements;
    report_.reproducible = chosen.plan->reproducible();
    report_.descriptor_bytes = chosen.plan->descriptor_bytes();
    choosing_ = chosen.choosing_seconds;
  }

  void describe() {
    BatchedReport& r = report_;
    r.batch = source_->name();
    r.count = source_->count(), r.nnz = source_->nnz();
    r.rows = extent_->rows(), r.cols = extent_->cols();
    r.least_rows = extent_->least_rows, r.most_rows = extent_->most_rows, r.most_cols = extent_->most_cols;
    r.columns = o_.columns, r.transpose = o_.transpose, r.relu = o_.relu, r.alpha = o_.alpha;
    r.type = name(o_.type), r.format = name(o_.format), r.bias = o_.bias, r.x = x_->name();
    r.backend = name(context_.device().backend), r.backend_why = context_.placement().why,
    r.ranks = context_.placement().ranks;
    double matrices = 0, bytes = 0;
    for (const BatchRange& range : mine_)
      matrices += static_cast<double>(range.end - range.begin), bytes += static_cast<double>(range.bytes);
    r.rank_matrices = over_ranks(matrices, ranks_);
    r.rank_bytes = over_ranks(bytes, ranks_);
    r.choosing = over_ranks(choosing_, ranks_);
    r.reproducible = ranks_.all_reduce(r.reproducible ? 1 : 0, Reduction::min) == 1;
    if (!r.verification) return;
    const std::vector<BatchedVerification> all = ranks_.all_gather(*r.verification);
    BatchedVerification together;
    for (const BatchedVerification& one : all) merge(together, one);
    r.verification = together;
  }

  Context& context_;
  Communicator& ranks_;
  const BatchedOptions& o_;
  std::shared_ptr<const BatchSource> source_;
  std::unique_ptr<Extent> extent_;
  std::unique_ptr<VectorSource> x_;
  ChunkOptions chunk_options_;
  HostVector<double> bias_;
  Buffer bias_on_device_;
  std::vector<BatchRange> mine_;
  std::int64_t rounds_ = 0;
  std::optional<VectorWriter> writer_;
  std::mutex files_;  ///< HDF5 takes one thread at a time
  double choosing_ = 0;
  BatchedReport report_;
};

}  // namespace

BatchedReport multiply_batched(Context& context, const BatchedOptions& options) {
  const ContextScope scope(context);
  return break_on_error(context.communicator(), [&] { return BatchedRun(context, options)(); });
}

}  // namespace shardmat
