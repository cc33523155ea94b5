#include "tools/bench/papers/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "kernels/batched/batched_tuner.h"
#include "kernels/batched/paper_launches.h"
#include "partition/batched/batch_source.h"
#include "tools/bench/batched_figures.h"
#include "tools/bench/batched_trial.h"
#include "tools/bench/papers/busy_share.h"
#include "tools/bench/papers/profiler.h"

namespace shardmat::tools {
namespace {

constexpr const char* kBusy = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";
constexpr int kPaperMultiprocessors = 56;  // P100
constexpr std::int64_t kBusyColumns = 512;

/// What the text prints of a figure: the best speed-up over non-batched products, at that number of columns, and over
/// gemmBatched there.
struct Published {
  std::string_view figure;
  std::int64_t columns;
  double over_others, over_cublas;  ///< 0: not printed
};
constexpr Published kPublished[] = {{"6a", 64, 9.27, 1.26}, {"6b", 512, 6.09, 1.43}, {"8", 1024, 3.29, 0}};

/// The kernels whose busy share the text prints for Fig. 6b with 512 columns.
struct BusyKernel {
  std::string_view name, heading, on_device;
  double published;
};
constexpr BusyKernel kBusyKernels[] = {{"coo_tensorflow", "TensorFlow, a launch a product", "add_products", 0.3551},
                                       {"coo_swa", "batched SWA, SparseTensor", "add_in_shared|add_in_global", 0.8907},
                                       {"swa", "batched SWA, CSR", "swa_product", 0.8787}};

/// Seconds of a product with its descriptors or pointers copied, as the paper counts; 0 if there are none that are right.
double seconds_of(const BatchedResult& result) {
  if (!result.refused.empty() || result.wrong > 0) return 0;
  const auto& timing = result.graph_placed ? result.graph_placed : result.plain_placed;
  return timing ? timing->median : 0;
}

/// The same as calls on a stream, with the gaps between launches, as the paper measures.
double seconds_called(const BatchedResult& result) {
  if (!result.refused.empty() || result.wrong > 0 || !result.plain_placed) return 0;
  return result.plain_placed->median;
}

/// Costs of blocks in bytes. Rows of the batch: nonzeros of matrix m's row i.
struct Shape {
  explicit Shape(const BatchView& view) : batch(view) {
    for (std::int64_t m = 0; m < batch.count(); ++m) most_rows = std::max(most_rows, static_cast<std::int32_t>(rows_of(m)));
  }
  std::int64_t rows_of(std::int64_t m) const {
    return batch.first_row[static_cast<std::size_t>(m) + 1] - batch.first_row[static_cast<std::size_t>(m)];
  }
  std::int64_t first(std::int64_t m) const { return batch.first_row[static_cast<std::size_t>(m)] - batch.first_row[0]; }
  /// Nonzeros of rows [begin, end) of the whole batch.
  double nnz(std::int64_t begin, std::int64_t end) const {
    return static_cast<double>(batch.row_ptr[static_cast<std::size_t>(end)] -
                               batch.row_ptr[static_cast<std::size_t>(begin)]);
  }
  const BatchView& batch;
  std::int32_t most_rows = 0;  ///< of a matrix
};

using Launches = std::vector<std::vector<double>>;
constexpr int kEntry = 4;  // bytes

/// A thread a nonzero and column; one launch a matrix.
Launches tensorflow_launches(const Shape& shape, std::int64_t columns) {
  Launches all;
  for (std::int64_t m = 0; m < shape.batch.count(); ++m) {
    double threads = shape.nnz(shape.first(m), shape.first(m) + shape.rows_of(m)) * static_cast<double>(columns);
    std::vector<double>& blocks = all.emplace_back();
    for (; threads > 0; threads -= batched::kTensorflowBlock)
      blocks.push_back(5 * kEntry * std::min<double>(threads, batched::kTensorflowBlock));
  }
  return all;
}

/// A block a matrix, or a block of its columns. REQUIRES: the columns of one block fit into shared memory.
Launches coo_swa_launches(const Shape& shape, std::int64_t columns) {
  const std::int64_t width = batched::coo_swa_part_columns(shape.most_rows, kEntry, columns);
  Launches all(1);
  for (std::int64_t first = 0; first < columns; first += width)
    for (std::int64_t m = 0; m < shape.batch.count(); ++m) {
      const auto part = static_cast<double>(std::min(width, columns - first));
      const double nnz = shape.nnz(shape.first(m), shape.first(m) + shape.rows_of(m));
      all[0].push_back(nnz * kEntry * (3 + part) + static_cast<double>(shape.rows_of(m)) * part * kEntry);
    }
  return all;
}

/// A sub-warp a row, every matrix with the blocks of the one with the most rows; superfluous ones read their first row only.
Launches swa_launches(const Shape& shape, std::int64_t columns) {
  const int block = batched::kSwaBlocks[0];
  const batched::SwaSpread spread = batched::swa_spread(shape.most_rows, kEntry, columns, block, true);
  const std::int64_t rows = block / spread.sub_warp;
  Launches all(1);
  for (std::int64_t m = 0; m < shape.batch.count(); ++m)
    for (std::int64_t part = 0; part < spread.parts; ++part)
      for (std::int64_t row_block = 0; row_block < spread.row_blocks; ++row_block) {
        const std::int64_t here = shape.rows_of(m), row = std::min(row_block * rows, here);
        const std::int64_t begin = shape.first(m) + row, end = shape.first(m) + std::min(row + rows, here);
        const auto width =
            static_cast<double>(std::min<std::int64_t>(spread.part_columns, columns - part * spread.part_columns));
        all[0].push_back(2 * kEntry + shape.nnz(begin, end) * kEntry * (2 + width) +
                         static_cast<double>(end - begin) * width * kEntry);
      }
  return all;
}

Cell gflops(double flops, double seconds) { return seconds > 0 ? Cell::figure(1e-9 * flops / seconds, 2) : Cell::none(); }
Cell ratio(double value) { return value > 0 ? Cell::figure(value, 2) : Cell::none(); }
double over(double base, double seconds) { return base > 0 && seconds > 0 ? base / seconds : 0; }
double fastest_of(std::initializer_list<double> all) {
  double least = 0;
  for (const double one : all)
    if (one > 0 && (least == 0 || one < least)) least = one;
  return least;
}

}  // namespace

BatchesPaper::BatchesPaper(bool small, const TrialOptions& options) : small_(small), options_(options) {
  table_.title = "Paper 1, Figs. 6 to 8: GFLOPS of batched products, f32";
  table_.notes = {
      "2 × nonzeros × columns / time, caches warm, descriptors and pointers copied to the device each time, as the paper "
      "counts.",
      "TensorFlow, cuSPARSE: a product after the other, replayed as a graph. SWA (CSR), SWA (ST): the paper's kernels swa "
      "and",
      "coo_swa, the fastest of all block sizes; the ids of a SparseTensor lie apart, rows and columns each by themselves, "
      "not",
      "interleaved as TensorFlow's. auto: ours."};
  if (small_)
    table_.notes.push_back(
        "Fig. 7 (matrices of one size, many in a batch) is left out at this size: --size full measures it.");
  table_.columns = {{"figure", "figure"},
                    {"source", "source", false},
                    {"batch", "batch"},
                    {"rows", "rows"},
                    {"nnz", "nonzeros"},
                    {"columns", "n_B"},
                    {"tensorflow", "TensorFlow"},
                    {"cusparse", "cuSPARSE"},
                    {"cublas", "cuBLAS gemmBatched"},
                    {"swa_st", "SWA (ST)"},
                    {"swa_csr", "SWA (CSR)"},
                    {"swa_choice", "its policy"},
                    {"auto", "auto"}};
  busy_.title =
      fmt::format("Paper 1: share of time in which SMs work (sm_efficiency), Fig. 6b with {} columns", kBusyColumns);
  busy_.notes = {
      "ncu: sm__cycles_active of peak, where ncu is on the PATH. model: the blocks that the kernels launch, dealt in order,",
      fmt::format(
          "each to the SM that is free first; a block takes as long as its bytes; for this device and for {} SMs, those",
          kPaperMultiprocessors),
      fmt::format(
          "of the paper's P100. Both with {}, {} and {} threads a block. The model knows no gaps between launches, which",
          batched::kTensorflowBlock, batched::kCooSwaBlocks[0], batched::kSwaBlocks[0]),
      "are what leaves SMs idle with a launch a product. paper: nvprof."};
  busy_.columns = {
      {"kernel", "kernel"}, {"blocks", "blocks"}, {"sms", "SMs"}, {"model", "model"}, {"model_p100", "model, 56 SMs"},
      {"ncu", "ncu"},       {"paper", "paper"}};
}

void BatchesPaper::measure(Stream& stream, const Progress& progress, const std::function<void()>& save) {
  const bool on_gpu = stream.device().backend == Backend::cuda;
  const std::vector<std::string> kernels =
      on_gpu ? std::vector<std::string>{"coo_tensorflow", "coo_swa", "swa", "auto"} : std::vector<std::string>{"auto"};
  for (const BatchFigure& figure : kBatchFigures) {
    if (figure.name == "large" || (small_ && figure.name.starts_with('7'))) continue;
    const auto source = open_batch(std::string(figure.source));
    const HostBatch batch = source->read(0, source->count());
    BatchedTrial trial(batch.view(), ValueType::f32, stream, options_);
    const std::vector<std::int64_t> counts =
        small_ ? std::vector{figure.least, figure.most} : powers_of_two(figure.least, figure.most);
    for (const std::int64_t columns : counts) {
      report(progress, fmt::format("Fig. {} n_B {}", figure.name, columns), 0, 1);
      trial.prepare(columns);
      std::map<std::string, BatchedResult, std::less<>> results;
      for (const std::string& kernel : kernels) results[kernel] = trial.measure(kernel);
      if (on_gpu)
        for (const PeerKind& peer : batched_peers())
          if (peer.name == "cusparse_plain" || peer.name == "cusparse_graph" || peer.name == "cublas_gemm_batched")
            results[std::string(peer.name)] = trial.measure(peer);
      std::map<std::string, double, std::less<>> seconds;
      for (const auto& [name, result] : results) {
        seconds[name] = seconds_of(result);
        if (result.wrong > 0) wrong_.insert(fmt::format("{} on Fig. {}", name, figure.name));
      }
      const double flops = 2.0 * static_cast<double>(source->nnz()) * static_cast<double>(columns);
      const double swa = fastest_of({seconds["swa"], seconds["coo_swa"]});
      const double others = fastest_of({seconds["cusparse_graph"], seconds["coo_tensorflow"]});
      const double swa_called = fastest_of({seconds_called(results["swa"]), seconds_called(results["coo_swa"])});
      const double others_called =
          fastest_of({seconds_called(results["cusparse_plain"]), seconds_called(results["coo_tensorflow"])});
      ratios_.push_back({std::string(figure.name), columns, over(others_called, swa_called), over(others, swa),
                         over(seconds["coo_tensorflow"], swa), over(seconds["cublas_gemm_batched"], swa),
                         over(others, seconds["auto"])});
      table_.rows.push_back(
          {Cell::word(std::string(figure.name)), Cell::word(std::string(figure.source)), Cell::count(source->count()),
           Cell::count(source->rows()), Cell::count(source->nnz()), Cell::count(columns),
           gflops(flops, seconds["coo_tensorflow"]), gflops(flops, seconds["cusparse_graph"]),
           gflops(flops, seconds["cublas_gemm_batched"]), gflops(flops, seconds["coo_swa"]), gflops(flops, seconds["swa"]),
           seconds["swa"] > 0 ? Cell::word(results["swa"].choice) : Cell::none(), gflops(flops, seconds["auto"])});
      save();
    }
  }
  add_busy_share(stream);
}

void BatchesPaper::add_busy_share(Stream& stream) {
  const auto figure = std::ranges::find(kBatchFigures, "6b", &BatchFigure::name);
  const HostBatch batch = [&] {
    const auto source = open_batch(std::string(figure->source));
    return source->read(0, source->count());
  }();
  const BatchView view = batch.view();
  const Shape shape(view);
  const bool on_gpu = stream.device().backend == Backend::cuda;
  const int multiprocessors = on_gpu ? properties(stream.device()).multiprocessors : 132;
  std::string why_not = on_gpu ? "" : "the backend is the host; the model takes the 132 SMs of an H100";
  for (const BusyKernel& kernel : kBusyKernels) {
    const Launches launches = kernel.name == "swa"       ? swa_launches(shape, kBusyColumns)
                              : kernel.name == "coo_swa" ? coo_swa_launches(shape, kBusyColumns)
                                                         : tensorflow_launches(shape, kBusyColumns);
    std::int64_t blocks = 0;
    for (const auto& launch : launches) blocks += std::ssize(launch);
    Counted counted;
    if (why_not.empty()) {
      std::vector<std::string> words{"batch",        std::string(figure->source),
                                     "--rhs",        std::to_string(kBusyColumns),
                                     "--kernel",     std::string(kernel.name),
                                     "--format",     kernel.name == "swa" ? "csr" : "coo",
                                     "--iterations", "1"};
      if (kernel.name == "swa")
        words.insert(words.end(), {"--policy", fmt::format("block_size={},shared=1", batched::kSwaBlocks[0])});
      if (kernel.name == "coo_swa")
        words.insert(words.end(), {"--policy", fmt::format("block_size={}", batched::kCooSwaBlocks[0])});
      counted = count_by_ncu(kBusy, std::string(kernel.on_device), words);
      why_not = counted.why_not;
    }
    busy_.rows.push_back(
        {Cell::word(std::string(kernel.heading)), Cell::count(blocks), Cell::count(multiprocessors),
         Cell::percent(busy_share(launches, multiprocessors)), Cell::percent(busy_share(launches, kPaperMultiprocessors)),
         counted.value ? Cell::percent(*counted.value / 100) : Cell::none(), Cell::percent(kernel.published)});
  }
  if (!why_not.empty()) busy_.notes.push_back("Nothing was counted: " + why_not + ".");
}

Paper::Tables BatchesPaper::tables() const {
  ResultTable summary;
  summary.title = "Paper 1: speed-up of the paper's own kernels, the better of both, beside what the paper prints";
  summary.notes = {
      "non-batched: the faster of TensorFlow's kernel and cuSPARSE, a product after the other. called: all are calls on a",
      "stream, as in the paper (P100, CUDA 9); replayed: all are graphs, which saves most of the time between launches, as "
      "in",
      "the other columns. auto: our own choice."};
  summary.columns = {{"figure", "figure"},
                     {"columns", "n_B"},
                     {"over_called", "over non-batched, called"},
                     {"paper_over_others", "paper"},
                     {"over_others", "replayed"},
                     {"over_tensorflow", "over TensorFlow"},
                     {"over_cublas", "over cuBLAS"},
                     {"paper_over_cublas", "paper"},
                     {"ours_over_others", "auto over non-batched"}};
  for (const Ratio& one : ratios_) {
    const auto known = std::ranges::find_if(
        kPublished, [&](const Published& p) { return p.figure == one.figure && p.columns == one.columns; });
    const bool printed = known != std::end(kPublished);
    summary.rows.push_back({Cell::word(one.figure), Cell::count(one.columns), ratio(one.over_called),
                            ratio(printed ? known->over_others : 0), ratio(one.over_others), ratio(one.over_tensorflow),
                            ratio(one.over_cublas), ratio(printed ? known->over_cublas : 0), ratio(one.ours_over_others)});
  }
  return {{"paper_1", table_}, {"paper_1_ratios", summary}, {"paper_1_sm", busy_}};
}

}  // namespace shardmat::tools
