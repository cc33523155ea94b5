#include "runtime/source/matrix_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "partition/generators/generator.h"
#include "partition/generators/mesh.h"
#include "partition/input_kind.h"
#include "partition/readers/reader.h"
#include "partition/shard/shard_file.h"
#include "runtime/context/context.h"
#include "runtime/context/context_scope.h"
#include "runtime/source/hdf5_on_ranks.h"
#include "runtime/source/read_on_ranks.h"
#include "runtime/source/transposed.h"

namespace shardmat {

std::string order_text(const MatrixSource& source) {
  if (source.file == nullptr || !source.file->permuted()) return "no";
  const RowOrder order = source.file->row_order();
  return order == RowOrder::by_length ? "globally in the file" : std::string(title(order)) + " in the file";
}

namespace {

/// Tells all ranks what is in an HDF5 file that another program wrote, before each of them opens it.
void describe_hdf5(const std::string& argument, InputKind kind, Communicator& communicator) {
  if (kind == InputKind::hdf5) return describe_on_all_ranks(Hdf5Input{argument, ShardFile::objects()}, communicator);
  if (const std::string mesh = mesh_of(argument); !mesh.empty())
    describe_on_all_ranks(Hdf5Input{mesh, tet_mesh_objects()}, communicator);
}

/// A file whose rows are not in order: the ranks sort them out.
MatrixSource read_into_memory(const std::string& argument, const OpenOptions& options, Communicator& communicator) {
  ReadOnRanksOptions how{options.allow_nonfinite, options.method, options.progress};
  how.choices = options.choices;
  how.keep_unknowns = options.keep_unknowns;
  how.node_block_size = options.node_block_size;
  ReadMatrix read = read_on_ranks(argument, how, communicator);
  MatrixSource source;
  source.rows = std::move(read.rows);
  const std::string remark(communicator.rank() == 0 ? remark_on(argument, options.choices) : "");
  source.access = fmt::format("{}, from {}{}{}; kept in memory, also for the verification", read.readers,
                              std::filesystem::path(argument).filename().string(), remark.empty() ? "" : ", ", remark);
  source.by_part = communicator.size() > 1;
  return source;
}

}  // namespace

MatrixSource open_matrix(const std::string& argument, Communicator& communicator, const OpenOptions& options) {
  if (options.transposed) {
    OpenOptions as_stored = options;
    as_stored.transposed = false;
    as_stored.method = "rows", as_stored.node_block_size = 1;  // even shares, which transposed() reads
    return transposed(open_matrix(argument, communicator, as_stored), options.method, communicator, {},
                      options.node_block_size);
  }
  InputKind kind = communicator.run_agreed([&] { return kind_of_input(argument, options.choices); });
  describe_hdf5(argument, kind, communicator);
  if (kind == InputKind::hdf5 && options.choices.format.empty() &&
      communicator.run_agreed([&] { return is_foreign_hdf5(argument); }))
    kind = InputKind::foreign;
  MatrixSource source;
  if (kind == InputKind::foreign) {
    const int any_rows = communicator.all_reduce(
        communicator.rank() == 0 && gives_any_rows(argument, options.choices) ? 1 : 0, Reduction::max);
    if (any_rows == 0) return read_into_memory(argument, options, communicator);
    const ReadOptions read{options.allow_nonfinite, {}, options.choices};
    communicator.run_agreed([&] { source.rows = open_matrix_rows(argument, read); });
    source.access = "each rank, its own rows";
    return source;
  }
  communicator.run_agreed([&] {
    if (kind == InputKind::generated) {
      source.rows = make_generator(argument);
      source.access = "each rank, which generates its own rows";
      return;
    }
    auto file = ShardFile::open(argument, options.allow_nonfinite);
    source.access = "each rank, its own rows";
    source.file = file.get();
    source.rows = std::move(file);
  });
  return source;
}

MatrixSource open_matrix(const std::string& argument, const Context& context, const OpenOptions& options) {
  const ContextScope scope(context);
  return open_matrix(argument, context.communicator(), options);
}

}  // namespace shardmat
