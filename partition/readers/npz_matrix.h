// A matrix in an archive of SciPy's save_npz: its format and sizes, and its entries in file order, in any number of passes.
// Internal to readers/. Only for files that are compiled with libzip.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "partition/readers/npz_archive.h"

namespace shardmat {

/// What the small members say. All functions throw Error(input) naming archive and member.
struct NpzMatrix {
  std::string format;  ///< "csr", "csc", "coo", "dia" or "bsr"
  std::int64_t rows = 0, cols = 0, nnz = 0;
  ComplexPart part = ComplexPart::none;
  std::int64_t stored = 0;                      ///< dia and bsr: numbers in data.npy, which are read as a whole
  std::int64_t block_rows = 1, block_cols = 1;  ///< bsr
  std::int64_t diagonal_length = 0;             ///< dia: columns of data.npy
  std::vector<std::int64_t> offsets{};          ///< dia: of the diagonals

  static NpzMatrix of(const NpzArchive& archive, ComplexPart part = ComplexPart::none);
  /// dia: the columns of a diagonal that lie in the matrix, [first_of(), end_of()).
  std::int64_t first_of(std::int64_t offset) const { return std::max<std::int64_t>(0, offset); }
  std::int64_t end_of(std::int64_t offset) const {
    std::int64_t end = 0;
    if (__builtin_add_overflow(rows, offset, &end)) end = cols;  // only a large offset does
    return std::max(first_of(offset), std::min({end, cols, diagonal_length}));
  }
  /// Bytes of the whole matrix, plus one number for each row, which sorting needs.
  std::int64_t bytes_needed() const;
};

/// The pointers of `lines` rows or columns with `nnz` entries: lines + 1 numbers.
HostVector<std::int64_t> read_pointers(const NpzArchive& archive, std::int64_t lines, std::int64_t nnz);

/// Members are streamed and converted in blocks of this many entries.
constexpr std::int64_t kNpzBlock = 1 << 15;

/// The numbers of data.npy of a matrix in the format dia or bsr, in C order.
HostVector<double> read_stored(const NpzArchive& archive, const NpzMatrix& matrix);

/// The entries of an archive in file order. Keeps the pointers of CSR, CSC and BSR in memory, of BSR also the indices, and
/// of DIA and BSR the numbers while they are visited.
class NpzEntries {
 public:
  NpzEntries(const NpzArchive& archive, const NpzMatrix& matrix) : archive_(archive), matrix_(matrix) {
    if (matrix.format == "dia") return;
    if (matrix.format == "bsr") {
      const std::int64_t blocks = matrix.nnz / (matrix.block_rows * matrix.block_cols);
      pointers_ = read_pointers(archive, matrix.rows / matrix.block_rows, blocks);
      indices_.resize(static_cast<std::size_t>(blocks));
      NpzMember(archive, "indices").next(indices_.data(), blocks);
    } else if (matrix.format != "coo")
      pointers_ = read_pointers(archive, matrix.format == "csr" ? matrix.rows : matrix.cols, matrix.nnz);
  }

  /// Calls visit(row, col, value). Without with_values, value is 0, and col is set only if it comes from the pointers.
  template <class Visit>
  void for_each(bool with_values, Visit&& visit) const;

 private:
  template <class Visit>
  void for_each_diagonal(bool with_values, Visit&& visit) const;
  template <class Visit>
  void for_each_block(bool with_values, Visit&& visit) const;

  const NpzArchive& archive_;
  const NpzMatrix& matrix_;
  HostVector<std::int64_t> pointers_, indices_;
};

/// Number j of a diagonal is in column j.
template <class Visit>
void NpzEntries::for_each_diagonal(bool with_values, Visit&& visit) const {
  const HostVector<double> values = with_values ? read_stored(archive_, matrix_) : HostVector<double>();
  for (std::size_t d = 0; d < matrix_.offsets.size(); ++d) {
    const std::int64_t offset = matrix_.offsets[d], before = static_cast<std::int64_t>(d) * matrix_.diagonal_length;
    for (std::int64_t j = matrix_.first_of(offset); j < matrix_.end_of(offset); ++j)
      visit(j - offset, j, with_values ? values[static_cast<std::size_t>(before + j)] : 0);
  }
}

template <class Visit>
void NpzEntries::for_each_block(bool with_values, Visit&& visit) const {
  const HostVector<double> values = with_values ? read_stored(archive_, matrix_) : HostVector<double>();
  const std::int64_t of_block = matrix_.block_rows * matrix_.block_cols;
  for (std::int64_t line = 0; line < std::ssize(pointers_) - 1; ++line)
    for (std::int64_t k = pointers_[static_cast<std::size_t>(line)]; k < pointers_[static_cast<std::size_t>(line) + 1]; ++k)
      for (std::int64_t i = 0; i < of_block; ++i)
        visit(line * matrix_.block_rows + i / matrix_.block_cols,
              indices_[static_cast<std::size_t>(k)] * matrix_.block_cols + i % matrix_.block_cols,
              with_values ? values[static_cast<std::size_t>(k * of_block + i)] : 0);
}

template <class Visit>
void NpzEntries::for_each(bool with_values, Visit&& visit) const {
  if (matrix_.format == "dia") return for_each_diagonal(with_values, visit);
  if (matrix_.format == "bsr") return for_each_block(with_values, visit);
  const bool is_coo = matrix_.format == "coo", is_csr = matrix_.format == "csr";
  const auto open = [&](bool wanted, const char* name) {
    return wanted ? std::make_unique<NpzMember>(archive_, name) : nullptr;
  };
  const auto row_member = open(!is_csr, is_coo ? "row" : "indices"),
             col_member = open(with_values && matrix_.format != "csc", is_coo ? "col" : "indices"),
             data_member = open(with_values, "data");
  if (data_member) data_member->choose(matrix_.part);
  std::vector<std::int64_t> row(kNpzBlock), col(kNpzBlock);
  std::vector<double> value(kNpzBlock);
  std::size_t line = 0;  // of the pointers
  for (std::int64_t first = 0; first < matrix_.nnz; first += kNpzBlock) {
    const std::int64_t count = std::min(kNpzBlock, matrix_.nnz - first);
    if (row_member) row_member->next(row.data(), count);
    if (col_member) col_member->next(col.data(), count);
    if (data_member) data_member->next(value.data(), count);
    for (std::int64_t k = 0; k < count; ++k) {
      const auto i = static_cast<std::size_t>(k);
      if (!is_coo)
        while (pointers_[line + 1] <= first + k) ++line;
      if (is_csr) row[i] = static_cast<std::int64_t>(line);
      else if (row[i] < 0 || row[i] >= matrix_.rows)
        row_member->fail("element " + std::to_string(first + k) + ": row " + std::to_string(row[i]) +
                         " is out of range [0, " + std::to_string(matrix_.rows) + ")");
      if (!is_coo && !is_csr) col[i] = static_cast<std::int64_t>(line);
      visit(row[i], col[i], value[i]);
    }
  }
}

}  // namespace shardmat
