// What option values must look like, checked while parsing and said in one plain sentence.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace shardmat::tools {

CLI::Validator whole_number(std::int64_t min, std::int64_t max);
/// Neither NaN nor infinite.
CLI::Validator finite_number();
CLI::Validator positive_number();
/// A file to write; an option in its place means that the name was forgotten.
CLI::Validator output_name();
/// The same with the suffix of shard files.
CLI::Validator shard_file_name();
/// The same with the suffix of pictures.
CLI::Validator picture_name();

/// A result must not take the place of what it is made from: throws Error(usage) if `output`, with or without a dataset's
/// name, is the file `input`. `what` says what that is.
void require_spared(const std::string& input, const std::string& what, const std::string& output);

}  // namespace shardmat::tools
