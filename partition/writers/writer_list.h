// The functions behind the lines of the list in writer.cpp.
#pragma once

#include "partition/writers/writer.h"

namespace shardmat {

/// Text: coordinate real general, every number in the shortest form that reads back as the same number.
void write_matrix_market(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                         const Progress& progress);

/// An uncompressed archive that scipy.sparse.load_npz reads as csr_matrix, with 32-bit indices if they suffice. Throws
/// Error(input) in a build without libzip.
void write_npz(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
               const Progress& progress);

/// PETSc's binary Mat, with 64-bit indices if sizes or the number of nonzeros need them.
void write_petsc(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                 const Progress& progress);

/// A MATLAB file with the sparse matrix A: of version 5 if the matrix fits, else of 7.3. Takes 16 bytes a nonzero.
void write_matlab(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                  const Progress& progress);
/// True if the sizes fit the fields of version 5: about 2^27 nonzeros.
bool fits_matlab5(std::int64_t rows, std::int64_t cols, std::int64_t nnz);
/// REQUIRES: fits_matlab5().
void write_matlab5(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                   const Progress& progress);
/// Version 7.3, which is HDF5.
void write_matlab_hdf5(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                       const Progress& progress);

/// The file of one rank of an IJ matrix of hypre, in text or binary.
void write_hypre_text(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                      const RankPart& part, const Progress& progress);
void write_hypre_binary(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                        const RankPart& part, const Progress& progress);

}  // namespace shardmat
