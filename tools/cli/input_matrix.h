// From what a user types to rows, for commands of one process: any matrix file, or a generator's specification.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "partition/readers/input_choices.h"
#include "partition/shard/shard_file.h"
#include "partition/source/row_source.h"
#include "tools/cli/options.h"

namespace shardmat::tools {

/// "file.h5, .mtx …" for help texts.
std::string known_suffixes();

/// Adds --input-format and what headerless and mapped files need.
void add_input_options(const CommandLine& app, InputChoices& choices);

/// Adds --files, the number of files of an output in hypre's format.
Option add_files_option(const CommandLine& app, std::int64_t& files);

struct InputMatrix {
  std::unique_ptr<RowSource> rows;
  const ShardFile* file = nullptr;  ///< `rows` if it is a shard file
  bool in_memory = false;           ///< `rows` shows its own arrays
};

/// A shard file, a PETSc file or a generator is streamed; other files are read whole, and with `say` a line tells how fast.
InputMatrix open_input(const std::string& input, bool allow_nonfinite, bool say, const InputChoices& choices = {});

}  // namespace shardmat::tools
