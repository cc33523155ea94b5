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

}  // namespace shardmat
