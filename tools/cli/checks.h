// What option values must look like, checked while parsing and said in one plain sentence.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/options.h"
#include "tools/cli/value_checks.h"

namespace shardmat::tools {

/// As output_name(), with the suffix of shard files.
ValueCheck shard_file_name();
/// The same with the suffix of pictures.
ValueCheck picture_name();

/// The name of a plot.
ValueCheck plot_name();

/// Throws, before long work, if a report or a picture cannot be written to `path`, or if that is a file of data, such as a
/// matrix. An empty name and - are no files.
void check_report_file(const std::string& path);

struct InputFile {
  std::string name;  ///< of a file, with or without a dataset's, or anything else that an option takes
  std::string what;  ///< as "the matrix"
};
/// A result must not take the place of what it is made from, nor of another result: throws Error(usage) if one of `outputs`
/// is an input, also through links, or another output. Empty names and - are none.
void require_spared(const std::vector<InputFile>& inputs, const std::vector<std::string>& outputs);

}  // namespace shardmat::tools
