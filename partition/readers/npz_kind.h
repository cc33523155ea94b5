// What an .npz archive holds.
#pragma once

#include <filesystem>

namespace shardmat {

enum class NpzKind {
  matrix,  ///< as scipy.sparse.save_npz writes it
  graphs,  ///< a batch of graphs, see partition/batched/batch_list.h
  other,   ///< other arrays, no archive, or unknown in a build without libzip
};

/// Decides by the names of the members. Does not throw if the file is no archive.
NpzKind kind_of_npz(const std::filesystem::path& path);

}  // namespace shardmat
