// The functions behind the lines of the list in reader.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "partition/readers/entry_reader.h"
#include "partition/readers/reader.h"
#include "partition/readers/text_source.h"

namespace shardmat {

/// By the suffixes .mtx and .mtx.gz, or the banner of plain text.
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

/// By its first line, or the suffix .csr.
bool accepts_csr_arrays(const std::filesystem::path& path);
std::unique_ptr<RowSource> open_csr_arrays(const std::filesystem::path& path, const ReadOptions& options);

/// A pattern of HDF5 files of ranks, or an HDF5 file with groups of ranks.
bool accepts_rank_hdf5(const std::filesystem::path& path);
std::unique_ptr<EntryReader> open_rank_hdf5_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                    const ReadLimits& limits);

/// An HDF5 file with a matrix of Binsparse, AnnData or 10x Genomics.
bool accepts_sparse_hdf5(const std::filesystem::path& path);
std::unique_ptr<EntryReader> open_sparse_hdf5_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                      const ReadLimits& limits);
std::vector<FileObject> list_sparse_hdf5(const std::filesystem::path& path);

/// Any HDF5 file, also behind a block of a user.
bool accepts_matlab_hdf5(const std::filesystem::path& path);
std::unique_ptr<EntryReader> open_matlab_hdf5_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                      const ReadLimits& limits);
std::vector<FileObject> list_matlab_hdf5(const std::filesystem::path& path);

/// By hypre's names: NAME where NAME.00000 exists, or the first file itself.
bool accepts_hypre(const std::filesystem::path& path);
std::unique_ptr<EntryReader> open_hypre_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                const ReadLimits& limits);

/// MATLAB's files of versions 5 to 7, by their first bytes; any .mat file that is no HDF5, so that errors say what it lacks.
bool accepts_matlab5(const std::filesystem::path& path);
std::unique_ptr<EntryReader> open_matlab5_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                  const ReadLimits& limits);
std::vector<FileObject> list_matlab5(const std::filesystem::path& path);

/// By its header, whatever its name. Also a file of Rutherford-Boeing without a matrix, so that errors say what it is.
bool accepts_harwell_boeing(const std::filesystem::path& path);
std::unique_ptr<EntryReader> open_harwell_boeing(const std::filesystem::path& path, const ReadOptions& options,
                                                 const ReadLimits& limits);
std::vector<FileObject> list_harwell_boeing(const std::filesystem::path& path);

/// A .mtx file without the banner of Matrix Market that has Abaqus' keywords or commas, or the name of its output.
bool accepts_abaqus(const std::filesystem::path& path);
std::unique_ptr<EntryReader> open_abaqus(const std::filesystem::path& path, const ReadOptions& options,
                                         const ReadLimits& limits);

/// By its first line, whatever its name.
bool accepts_freefem(const std::filesystem::path& path);
std::unique_ptr<EntryReader> open_freefem(const std::filesystem::path& path, const ReadOptions& options,
                                          const ReadLimits& limits);

/// By the suffixes .sti, .mas, .con, .sph and .str.
bool accepts_calculix(const std::filesystem::path& path);
std::unique_ptr<EntryReader> open_calculix(const std::filesystem::path& path, const ReadOptions& options,
                                           const ReadLimits& limits);

/// Never by itself; see look_for_triplets().
bool accepts_triplets(const std::filesystem::path& path);
/// Throws Error(usage) unless the choices name the first index.
std::unique_ptr<EntryReader> open_triplets(const std::filesystem::path& path, const ReadOptions& options,
                                           const ReadLimits& limits);
/// A first line of words, as "row,col,val".
struct TripletHeader {
  std::int64_t line = 0;  ///< its number from 1; 0: the file has none
  std::string text;
};
/// Nothing unless a line with two indices, and a value or none, is the first one that is no comment, or follows a header.
/// Does not throw.
std::optional<TripletHeader> look_for_triplets(const std::filesystem::path& path);

}  // namespace shardmat
