// The functions behind the lines of the list in reader.cpp.
#pragma once

#include "partition/readers/entry_reader.h"
#include "partition/readers/reader.h"
#include "partition/readers/text_source.h"

namespace shardmat {

bool accepts_matrix_market(const std::filesystem::path& path);
HostCsr read_matrix_market(const std::filesystem::path& path, const ReadOptions& options);
HostCsr read_matrix_market(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits);
std::unique_ptr<EntryReader> open_matrix_market_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                        const ReadLimits& limits);

bool accepts_npz(const std::filesystem::path& path);
/// Throws Error(input) in a build without libzip.
HostCsr read_npz(const std::filesystem::path& path, const ReadOptions& options);
HostCsr read_npz(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits);
std::unique_ptr<EntryReader> open_npz_entries(const std::filesystem::path& path, const ReadOptions& options,
                                              const ReadLimits& limits);

/// By its first number, or the suffix .petsc.
bool accepts_petsc(const std::filesystem::path& path);
std::unique_ptr<RowSource> open_petsc_rows(const std::filesystem::path& path, const ReadOptions& options);
std::vector<FileObject> list_petsc(const std::filesystem::path& path);

}  // namespace shardmat
