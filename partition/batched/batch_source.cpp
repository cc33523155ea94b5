// The list of what batches are read from, and the batch in memory.
#include "partition/batched/batch_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>

#include "kernels/base/error.h"
#include "partition/batched/batch_list.h"
#include "partition/files/missing_file.h"
#include "partition/generators/arguments.h"
#include "partition/readers/reader.h"

namespace shardmat {
namespace {

const BatchKind kKinds[] = {
    {"generator", "batch:dim=32-256,… or molecules:count=16384,…", accepts_batch_generator, make_batch_generator},
    {"batch-file", "FILE.h5, as shardmat batch --save writes it", accepts_batch_file, open_batch_file},
    {"graph-npz", "FILE.npz with graph_ptr, indptr, indices and, if weighted, data", accepts_graph_npz, open_graph_npz},
    {"tudataset", "folder or prefix of …_A.txt, …_graph_indicator.txt, …_edge_attributes.txt", accepts_tudataset,
     open_tudataset},
    {"matrix-files", "a folder of .mtx files, or a LIST.txt of matrix files, one a line", accepts_matrix_files,
     open_matrix_files},
};

/// Matrices whose sizes are held at a time.
constexpr std::int64_t kSizesAtATime = 1 << 20;

class MemoryBatch final : public BatchSource {
 public:
  MemoryBatch(std::shared_ptr<const HostBatch> batch, std::string name)
      : BatchSource(std::move(name),
                    {batch->view().count(), batch->view().rows(), batch->view().cols(), batch->view().nnz()}),
        batch_(std::move(batch)) {}

 private:
  BatchSizes sizes_of(std::int64_t begin, std::int64_t end) const override {
    const BatchView view = batch_->view();
    BatchSizes sizes;
    for (std::int64_t i = begin; i < end; ++i) {
      sizes.rows.push_back(view.rows_of(i));
      sizes.cols.push_back(view.cols_of(i));
      sizes.nnz.push_back(view.nnz_of(i));
    }
    return sizes;
  }
  HostBatch read_range(std::int64_t begin, std::int64_t end) const override {
    HostBatch range;
    range.append(batch_->view().slice(begin, end));
    return range;
  }

  std::shared_ptr<const HostBatch> batch_;
};

std::int64_t sum(const HostVector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

}  // namespace

void BatchTotals::add(const BatchSizes& sizes) {
  count += std::ssize(sizes.rows);
  rows += sum(sizes.rows);
  cols += sum(sizes.cols);
  nnz += sum(sizes.nnz);
}

void BatchSource::require_range(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || begin > end || end > count())
    throw Error(ErrorKind::internal,
                fmt::format("matrices [{}, {}) asked of {} with {} matrices", begin, end, name(), count()));
}

BatchSizes BatchSource::sizes(std::int64_t begin, std::int64_t end) const {
  require_range(begin, end);
  return begin == end ? BatchSizes() : sizes_of(begin, end);
}

HostBatch BatchSource::read(std::int64_t begin, std::int64_t end) const {
  require_range(begin, end);
  return begin == end ? HostBatch() : read_range(begin, end);
}

void for_each_chunk(const BatchSource& source, std::int64_t begin, std::int64_t end,
                    const std::function<void(std::int64_t, std::int64_t)>& use, std::int64_t most) {
  std::int64_t first = begin;
  BatchTotals chunk;
  for (std::int64_t from = begin; from < end; from += kSizesAtATime) {
    const std::int64_t to = std::min(end, from + kSizesAtATime);
    const BatchSizes sizes = source.sizes(from, to);
    for (std::int64_t i = from; i < to; ++i) {
      const auto at = static_cast<std::size_t>(i - from);
      const BatchTotals longer{i + 1 - first, chunk.rows + sizes.rows[at], chunk.cols + sizes.cols[at],
                               chunk.nnz + sizes.nnz[at]};
      if (i > first && std::max({longer.count, longer.rows, longer.cols, longer.nnz}) > most) {
        use(first, i);
        first = i;
        chunk = {1, sizes.rows[at], sizes.cols[at], sizes.nnz[at]};
      } else {
        chunk = longer;
      }
    }
  }
  if (first < end) use(first, end);
}

std::unique_ptr<BatchSource> make_memory_batch(std::shared_ptr<const HostBatch> batch, std::string name) {
  validate(batch->view(), name);
  return std::make_unique<MemoryBatch>(std::move(batch), std::move(name));
}

std::span<const BatchGenerator> batch_generators() {
  static const BatchGenerator list[] = {
      random_batch_generator(),  // random_batch.cpp
      molecules_generator(),     // molecule_batch.cpp
  };
  return list;
}

bool accepts_batch_generator(const std::string& argument) { return is_specification(batch_generators(), argument); }

void refuse_choice(const EdgeValues& edges, const std::string& argument) {
  if (edges.chosen())
    throw Error(
        ErrorKind::usage,
        fmt::format("{}: its values are those of its matrices; only edges of graph data sets (TUDataset, .npz) can be "
                    "unweighted, or have attributes to choose from",
                    argument),
        edges.unweighted ? "unweighted" : "edge_attribute");
}

std::unique_ptr<BatchSource> make_batch_generator(const std::string& argument, const EdgeValues& edges) {
  refuse_choice(edges, argument);
  std::error_code error;
  if (argument.find(':') == std::string::npos && std::filesystem::exists(argument, error))
    throw Error(ErrorKind::usage, fmt::format("{} is a generator and also a file here; write {}: for the generator or ./{} "
                                              "for the file",
                                              argument, argument, argument));
  return make_specified(batch_generators(), argument);
}

std::span<const BatchKind> batch_kinds() { return kKinds; }

std::unique_ptr<BatchSource> open_batch(const std::string& argument, const EdgeValues& edges) {
  for (const BatchKind& kind : kKinds)
    if (kind.accepts(argument)) return kind.open(argument, edges);
  std::error_code error;
  if (!std::filesystem::exists(argument, error)) fail_missing(argument);
  for (const Reader& reader : readers())
    if (reader.accepts(argument))
      throw Error(
          ErrorKind::input,
          fmt::format("{}: it is one matrix, not a batch; several are a folder of .mtx files, or a LIST.txt that names "
                      "matrix files. For one: shardmat multiply {}",
                      argument, argument));
  std::string understood;
  for (const BatchKind& kind : kKinds) understood += fmt::format("\n  {}", kind.help);
  throw Error(ErrorKind::input,
              fmt::format("{}: it is no batch of matrices that can be read; give one of:{}", argument, understood));
}

}  // namespace shardmat
