// Collections of graphs in one NumPy archive.
#include <fmt/format.h>

#include "kernels/base/error.h"
#include "partition/batched/batch_list.h"

namespace shardmat {

bool accepts_graph_npz(const std::string& argument) { return std::filesystem::path(argument).extension() == ".npz"; }

}  // namespace shardmat

#ifndef SHARDMAT_HAVE_LIBZIP

namespace shardmat {

std::unique_ptr<BatchSource> open_graph_npz(const std::string& argument, const EdgeValues&) {
  throw Error(ErrorKind::input, fmt::format("{}: this build cannot read .npz files because libzip was not found; install "
                                            "libzip-dev and build again",
                                            argument));
}

}  // namespace shardmat

#else

#include <algorithm>

#include <vector>

#include "partition/readers/npz_archive.h"
#include "partition/readers/text_source.h"

namespace shardmat {
namespace {

/// A member with offsets that run from 0 and do not fall.
HostVector<std::int64_t> read_offsets(const NpzArchive& archive, const char* name) {
  NpzMember member(archive, name);
  HostVector<std::int64_t> offsets(static_cast<std::size_t>(member.count()));
  member.next(offsets.data(), member.count());
  if (offsets.empty() || offsets.front() != 0) member.fail("it must begin with 0");
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    if (offsets[i + 1] < offsets[i])
      member.fail(
          fmt::format("element {} = {} is followed by the smaller {}; it must not decrease", i, offsets[i], offsets[i + 1]));
  return offsets;
}

void require_count(const NpzMember& member, std::int64_t count, const char* of) {
  if (member.count() != count)
    member.fail(fmt::format("it has {} elements; the end of {} asks for {}", member.count(), of, count));
}

/// In blocks, so that the wide numbers that NumPy's types become are never all in memory.
void read_indices(const NpzArchive& archive, std::int64_t count, HostVector<std::int32_t>& col_idx) {
  constexpr std::int64_t kBlock = 1 << 15;
  NpzMember member(archive, "indices");
  require_count(member, count, "indptr");
  col_idx.resize(static_cast<std::size_t>(count));
  HostVector<std::int64_t> block(static_cast<std::size_t>(kBlock));
  for (std::int64_t done = 0; done < count; done += kBlock) {
    const std::int64_t size = std::min(kBlock, count - done);
    member.next(block.data(), size);
    for (std::int64_t k = 0; k < size; ++k) {
      const std::int64_t index = block[static_cast<std::size_t>(k)];
      const auto narrow = static_cast<std::int32_t>(index);
      if (narrow != index) member.fail(fmt::format("element {} = {} is no index within a graph", done + k, index));
      col_idx[static_cast<std::size_t>(done + k)] = narrow;
    }
  }
}

/// The members, of those named, that the archive has.
std::vector<const char*> present(const NpzArchive& archive, std::initializer_list<const char*> names) {
  std::vector<const char*> found;
  for (const char* name : names)
    if (archive.has(name)) found.push_back(name);
  return found;
}

void read_values(const NpzArchive& archive, const EdgeValues& edges, HostVector<double>& values) {
  if (edges.attribute > 0)
    throw Error(ErrorKind::usage,
                fmt::format("{}: an .npz file has its values in the member data; only edges of a TUDataset have attributes "
                            "to choose from",
                            archive.path().string()),
                "edge_attribute");
  std::fill(values.begin(), values.end(), 1);
  if (edges.unweighted) return;
  const auto names = present(archive, {"data", "values", "weight", "weights", "edge_weight", "edge_weights"});
  const auto unclear =
      present(archive, {"edge_attr", "edge_attributes", "edge_values", "attr", "value", "val", "vals", "w"});
  if (names.size() > 1)
    archive.fail(fmt::format("it has the members {}.npy and {}.npy, and either could hold the values; leave one out, or "
                             "take the edges unweighted",
                             names[0], names[1]),
                 "unweighted");
  if (names.empty() && !unclear.empty())
    archive.fail(fmt::format("it has the member {}.npy but none with values; store the values as data, or take the edges "
                             "unweighted",
                             unclear.front()),
                 "unweighted");
  if (names.empty()) return;
  NpzMember member(archive, names.front());
  require_count(member, std::ssize(values), "indptr");
  member.next(values.data(), std::ssize(values));
}

}  // namespace

std::unique_ptr<BatchSource> open_graph_npz(const std::string& argument, const EdgeValues& edges) {
  const NpzArchive archive(argument);
  if (!archive.has("graph_ptr") && archive.has("format"))
    archive.fail(fmt::format("it is one matrix, not a batch of graphs; for one matrix: shardmat multiply {}", argument));
  for (const char* name : {"graph_ptr", "indptr", "indices"})
    if (!archive.has(name))
      archive.fail(
          fmt::format("it has no member {}.npy; a batch has graph_ptr, indptr and indices (and data, if the values "
                      "are not all 1)",
                      name));
  auto batch = std::make_shared<HostBatch>();
  const std::int64_t graphs = NpzMember(archive, "graph_ptr").count(), rows = NpzMember(archive, "indptr").count();
  ReadLimits().require_budget(16 * graphs + 8 * rows + 12 * NpzMember(archive, "indices").count(), archive.file());
  batch->first_row = read_offsets(archive, "graph_ptr");
  batch->first_col = batch->first_row;
  batch->row_ptr = read_offsets(archive, "indptr");
  if (std::ssize(batch->row_ptr) != batch->first_row.back() + 1)
    archive.fail(fmt::format("indptr.npy has {} elements; the end of graph_ptr asks for {}", batch->row_ptr.size(),
                             batch->first_row.back() + 1));
  const std::int64_t nnz = batch->row_ptr.back();
  read_indices(archive, nnz, batch->col_idx);
  batch->values.resize(static_cast<std::size_t>(nnz));
  read_values(archive, edges, batch->values);
  archive.file().require_unchanged();
  return make_memory_batch(std::move(batch), argument);
}

}  // namespace shardmat

#endif
