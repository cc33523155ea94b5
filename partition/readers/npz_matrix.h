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
  std::string format;  ///< "csr", "csc" or "coo"
  std::int64_t rows = 0, cols = 0, nnz = 0;
  ComplexPart part = ComplexPart::none;

  static NpzMatrix of(const NpzArchive& archive, ComplexPart part = ComplexPart::none);
  /// Bytes of the whole matrix, plus one number for each row, which sorting needs.
  std::int64_t bytes_needed() const;
};

/// The pointers of `lines` rows or columns with `nnz` entries: lines + 1 numbers.
HostVector<std::int64_t> read_pointers(const NpzArchive& archive, std::int64_t lines, std::int64_t nnz);

/// Members are streamed and converted in blocks of this many entries.
constexpr std::int64_t kNpzBlock = 1 << 15;

/// The entries of an archive in file order. Keeps the pointers of CSR and CSC in memory.
class NpzEntries {
 public:
  NpzEntries(const NpzArchive& archive, const NpzMatrix& matrix) : archive_(archive), matrix_(matrix) {
    if (matrix.format != "coo")
      pointers_ = read_pointers(archive, matrix.format == "csr" ? matrix.rows : matrix.cols, matrix.nnz);
  }

  /// Calls visit(row, col, value). Without with_values, value is 0, and col is set only if it comes from the pointers.
  template <class Visit>
  void for_each(bool with_values, Visit&& visit) const;

 private:
  const NpzArchive& archive_;
  const NpzMatrix& matrix_;
  HostVector<std::int64_t> pointers_;
};

template <class Visit>
void NpzEntries::for_each(bool with_values, Visit&& visit) const {
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
