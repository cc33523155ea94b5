#include "runtime/petsc/aij_copy.h"

#include <algorithm>
#include <string_view>

namespace shardmat::petsc {
namespace {

constexpr const char* kName = "shardmat_copy";

/// This rank's rows as PETSc holds them: a block of the columns that the rank owns, and a block of the rest.
struct Rows {
  Mat diagonal = nullptr, rest = nullptr;  ///< rest: NULL on one rank
  PetscInt count = 0, first_column = 0;
  const PetscInt *ptr = nullptr, *columns = nullptr;            ///< of the diagonal block
  const PetscInt *rest_ptr = nullptr, *rest_columns = nullptr;  ///< local numbers,
  const PetscInt* rest_global = nullptr;                        ///< and their global ones, ascending
  PetscInt lower = 0;                                           ///< how many of these are before first_column

  PetscInt64 nonzeros() const { return count == 0 ? 0 : PetscInt64{ptr[count]} + (rest == nullptr ? 0 : rest_ptr[count]); }
};

PetscErrorCode get_blocks(Mat a, Rows& rows) {
  PetscBool parallel = PETSC_FALSE;
  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare(object(a), MATMPIAIJ, &parallel));
  if (parallel) PetscCall(MatMPIAIJGetSeqAIJ(a, &rows.diagonal, &rows.rest, &rows.rest_global));
  else rows.diagonal = a;
  PetscFunctionReturn(kDone);
}

PetscErrorCode version_of(Mat a, const Rows& rows, Version& version) {
  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet(object(a), &version.matrix));
  PetscCall(PetscObjectStateGet(object(rows.diagonal), &version.diagonal));
  if (rows.rest != nullptr) PetscCall(PetscObjectStateGet(object(rows.rest), &version.rest));
  PetscCall(MatGetNonzeroState(a, &version.pattern));
  PetscFunctionReturn(kDone);
}

PetscErrorCode get_pattern(Mat a, Rows& rows) {
  PetscBool there = PETSC_FALSE;
  PetscInt count = 0, global = 0;
  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRangeColumn(a, &rows.first_column, nullptr));
  PetscCall(MatGetRowIJ(rows.diagonal, 0, PETSC_FALSE, PETSC_FALSE, &rows.count, &rows.ptr, &rows.columns, &there));
  PetscCheck(there, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the matrix of type %s gives no rows", object(a)->type_name);
  if (rows.rest != nullptr) {
    PetscCall(MatGetRowIJ(rows.rest, 0, PETSC_FALSE, PETSC_FALSE, &count, &rows.rest_ptr, &rows.rest_columns, &there));
    PetscCall(MatGetLocalSize(rows.rest, nullptr, &global));
    PetscCheck(there && (global == 0 || rows.rest_global != nullptr), PETSC_COMM_SELF, PETSC_ERR_PLIB,
               "the matrix of type %s gives no rows", object(a)->type_name);
    rows.lower = static_cast<PetscInt>(std::lower_bound(rows.rest_global, rows.rest_global + global, rows.first_column) -
                                       rows.rest_global);
  }
  PetscFunctionReturn(kDone);
}

PetscErrorCode restore_pattern(Rows& rows) {
  PetscBool there = PETSC_FALSE;
  PetscInt count = 0;
  PetscFunctionBegin;
  PetscCall(MatRestoreRowIJ(rows.diagonal, 0, PETSC_FALSE, PETSC_FALSE, &count, &rows.ptr, &rows.columns, &there));
  if (rows.rest != nullptr)
    PetscCall(MatRestoreRowIJ(rows.rest, 0, PETSC_FALSE, PETSC_FALSE, &count, &rows.rest_ptr, &rows.rest_columns, &there));
  PetscFunctionReturn(kDone);
}

/// Calls take(of_diagonal, first, count) for each run of entries, in the order of the global columns.
template <class Take>
void for_each_run(const Rows& rows, PetscInt row, Take&& take) {
  const PetscInt begin = rows.ptr[row], end = rows.ptr[row + 1];
  if (rows.rest == nullptr) return take(true, begin, end - begin);
  const PetscInt rest = rows.rest_ptr[row], rest_end = rows.rest_ptr[row + 1];
  PetscInt middle = rest;  // AIJ sorts the columns of a row
  while (middle < rest_end && rows.rest_columns[middle] < rows.lower) ++middle;
  take(false, rest, middle - rest);
  take(true, begin, end - begin);
  take(false, middle, rest_end - middle);
}

void write_pattern(const Rows& rows, std::int64_t* row_ptr, std::int64_t* columns) {
  std::int64_t at = 0;
  row_ptr[0] = 0;
  for (PetscInt row = 0; row < rows.count; ++row) {
    for_each_run(rows, row, [&](bool of_diagonal, PetscInt first, PetscInt count) {
      for (PetscInt k = first; k < first + count; ++k)
        columns[at++] =
            of_diagonal ? std::int64_t{rows.columns[k]} + rows.first_column : rows.rest_global[rows.rest_columns[k]];
    });
    row_ptr[row + 1] = at;
  }
}

/// Two patterns with the same hash are taken for the same.
std::uint64_t hash_of(const Rows& rows) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
  std::uint64_t lanes[4] = {1, 2, 3, 4};
  const auto add = [&](const PetscInt* from, PetscInt64 count) {
    PetscInt64 i = 0;
    for (; i + 4 <= count; i += 4)
      for (int lane = 0; lane < 4; ++lane)
        lanes[lane] = (lanes[lane] ^ static_cast<std::uint64_t>(from[i + lane])) * kFactor;
    for (; i < count; ++i) lanes[0] = (lanes[0] ^ static_cast<std::uint64_t>(from[i])) * kFactor;
    for (std::uint64_t& lane : lanes) lane ^= lane >> 29;
  };
  add(&rows.count, 1);
  add(rows.ptr, PetscInt64{rows.count} + 1);
  add(rows.columns, rows.ptr[rows.count]);
  if (rows.rest != nullptr) {
    PetscInt64 global = 0;
    add(rows.rest_ptr, PetscInt64{rows.count} + 1);
    add(rows.rest_columns, rows.rest_ptr[rows.count]);
    for (PetscInt k = 0; k < rows.rest_ptr[rows.count]; ++k) global = std::max<PetscInt64>(global, rows.rest_columns[k] + 1);
    add(rows.rest_global, global);
  }
  return ((lanes[0] * kFactor ^ lanes[1]) * kFactor ^ lanes[2]) * kFactor ^ lanes[3];
}

/// This rank's values in the order of write_pattern(). `scratch`: NULL, or to be freed by PetscFree().
PetscErrorCode get_values(const Rows& rows, const PetscScalar** values, PetscScalar** scratch) {
  const PetscScalar *diagonal = nullptr, *rest = nullptr;
  PetscFunctionBegin;
  *scratch = nullptr;
  PetscCall(MatSeqAIJGetArrayRead(rows.diagonal, &diagonal));
  *values = diagonal;
  if (rows.rest != nullptr) {
    PetscCall(PetscMalloc1(rows.nonzeros(), scratch));
    PetscCall(MatSeqAIJGetArrayRead(rows.rest, &rest));
    PetscScalar* to = *scratch;
    for (PetscInt row = 0; row < rows.count; ++row)
      for_each_run(rows, row, [&](bool of_diagonal, PetscInt first, PetscInt count) {
        std::copy_n((of_diagonal ? diagonal : rest) + first, count, to);
        to += count;
      });
    *values = *scratch;
    PetscCall(MatSeqAIJRestoreArrayRead(rows.rest, &rest));
    PetscCall(MatSeqAIJRestoreArrayRead(rows.diagonal, &diagonal));
  }
  PetscFunctionReturn(kDone);
}

PetscErrorCode restore_values(const Rows& rows, const PetscScalar** values, PetscScalar** scratch) {
  PetscFunctionBegin;
  if (rows.rest == nullptr) PetscCall(MatSeqAIJRestoreArrayRead(rows.diagonal, values));
  PetscCall(PetscFree(*scratch));
  PetscFunctionReturn(kDone);
}

void destroy_products(AijCopy& copy) {
  shardmat_product_destroy(copy.product);
  shardmat_product_destroy(copy.wide);
  copy.product = copy.wide = nullptr;
}

void destroy_copy(AijCopy& copy) {
  destroy_products(copy);
  shardmat_matrix_destroy(copy.matrix);
  copy.matrix = nullptr;
}

PetscErrorCode destroy_record(void* record) {
  auto* copy = static_cast<AijCopy*>(record);
  PetscFunctionBegin;
  destroy_copy(*copy);
  PetscCall(PetscFree(copy));
  PetscFunctionReturn(kDone);
}

PetscInt64 next_number() {
  static PetscInt64 last = 0;
  return ++last;
}

PetscErrorCode make_copy(Mat a, const Rows& rows, bool keep_rows, AijCopy& copy) {
  const MPI_Comm comm = PetscObjectComm(object(a));
  shardmat_context* context = nullptr;
  const Choices& choices = copy.choices;
  shardmat_rows given{};
  shardmat_matrix_options options{};
  std::int64_t *row_ptr = nullptr, *columns = nullptr;
  const PetscScalar* values = nullptr;
  PetscScalar* scratch = nullptr;
  PetscInt first_row = 0, cols = 0, all_rows = 0, block_size = 1;
  PetscFunctionBegin;
  destroy_copy(copy);
  PetscCall(context_of(comm, &context));
  copy.takes_values = std::string_view(choices.storage) == "general";
  PetscCall(MatGetOwnershipRange(a, &first_row, nullptr));
  PetscCall(MatGetSize(a, &all_rows, &cols));
  PetscCall(MatGetBlockSize(a, &block_size));
  PetscCall(PetscMalloc2(rows.count + 1, &row_ptr, rows.nonzeros(), &columns));
  write_pattern(rows, row_ptr, columns);
  PetscCall(get_values(rows, &values, &scratch));
  given.size = sizeof given;
  given.first_row = first_row, given.rows = rows.count, given.cols = cols;
  given.row_ptr = row_ptr, given.columns = columns;
  given.values = values, given.value_type = SHARDMAT_F64;
  options.size = sizeof options;
  options.kernel = choices.kernel[0] == '\0' ? nullptr : choices.kernel;
  options.storage = choices.storage;
  options.products = static_cast<double>(choices.products);
  options.updatable = copy.takes_values ? 1 : 0;
  options.drop_rows = keep_rows ? 0 : 1;
  if (block_size > 1 && all_rows == cols) options.node_block_size = static_cast<int>(block_size);
  PetscCall(check(comm, shardmat_matrix_from_rows(context, &given, &options, &copy.matrix)));
  PetscCall(restore_values(rows, &values, &scratch));
  PetscCall(PetscFree2(row_ptr, columns));
  copy.has_rows = keep_rows;
  copy.number = next_number();
  ++copy.copies;
  PetscFunctionReturn(kDone);
}

PetscErrorCode update_values(Mat a, const Rows& rows, AijCopy& copy) {
  const PetscScalar* values = nullptr;
  PetscScalar* scratch = nullptr;
  PetscFunctionBegin;
  PetscCall(get_values(rows, &values, &scratch));
  PetscCall(check(PetscObjectComm(object(a)),
                  shardmat_matrix_update_values(copy.matrix, values, rows.nonzeros(), SHARDMAT_F64, 0, nullptr)));
  PetscCall(restore_values(rows, &values, &scratch));
  ++copy.new_values;
  PetscFunctionReturn(kDone);
}

/// Whether `mine` is true on all ranks.
PetscErrorCode on_all_ranks(Mat a, bool mine, bool* all) {
  int one = mine ? 1 : 0, together = one;
  PetscMPIInt ranks = 1;
  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm(object(a)), &ranks));
  if (ranks > 1) PetscCallMPI(MPI_Allreduce(&one, &together, 1, MPI_INT, MPI_MIN, PetscObjectComm(object(a))));
  *all = together != 0;
  PetscFunctionReturn(kDone);
}

PetscErrorCode bring_up_to_date(Mat a, bool keep_rows, Rows& rows, AijCopy& copy, const Version& now) {
  bool same =
      copy.matrix != nullptr && copy.takes_values && (copy.has_rows || !keep_rows) && now.pattern == copy.version.pattern;
  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(events().copy, a, 0, 0, 0));
  PetscCall(get_pattern(a, rows));
  const std::uint64_t pattern = hash_of(rows);
  // PETSc's state of the pattern tells this alone, but where another matrix was put into this one (MatHeaderMerge).
  PetscCall(on_all_ranks(a, same && pattern == copy.pattern, &same));
  if (same) PetscCall(update_values(a, rows, copy));
  else PetscCall(make_copy(a, rows, keep_rows, copy));
  copy.pattern = pattern;
  copy.nonzeros = rows.nonzeros();
  PetscCall(restore_pattern(rows));
  copy.version = now;
  PetscCall(PetscLogEventEnd(events().copy, a, 0, 0, 0));
  PetscFunctionReturn(kDone);
}

PetscErrorCode make_product(AijCopy& copy, PetscInt columns, shardmat_product** product) {
  shardmat_product_options options{};
  PetscFunctionBegin;
  options.size = sizeof options;
  options.column_major_y = columns > 1 ? 1 : 0;
  PetscCall(check(PetscObjectComm(object(copy.of)), shardmat_product_create(copy.matrix, columns, &options, product)));
  PetscFunctionReturn(kDone);
}

shardmat_dense dense_of(const PetscScalar* data, PetscInt rows, PetscInt columns, PetscInt leading) {
  shardmat_dense made{};
  made.data = const_cast<PetscScalar*>(data);
  made.rows = rows, made.columns = columns, made.leading = leading;
  made.column_major = columns > 1 ? 1 : 0;
  made.type = SHARDMAT_F64;
  return made;
}

}  // namespace

PetscErrorCode read_choices(PetscOptionItems* PetscOptionsObject, Mat a) {
  AijCopy* record = nullptr;
  PetscFunctionBegin;
  PetscCall(record_of(a, &record));
  Choices& choices = record->choices;
  PetscOptionsHeadBegin(PetscOptionsObject, "Shardmat's copy of a matrix");
  PetscCall(PetscOptionsString("-mat_shardmat_kernel", "kernel that multiplies (default: chosen, see shardmat help)", "",
                               choices.kernel, choices.kernel, sizeof choices.kernel, nullptr));
  PetscCall(PetscOptionsString("-mat_shardmat_storage", "general; or symmetric: half of a symmetric matrix, on the host", "",
                               choices.storage, choices.storage, sizeof choices.storage, nullptr));
  PetscCall(PetscOptionsReal("-mat_shardmat_products",
                             "products expected of a pattern; from 300 on kernels are measured before one is chosen", "",
                             choices.products, &choices.products, nullptr));
  PetscOptionsHeadEnd();
  PetscFunctionReturn(kDone);
}

PetscErrorCode is_aij(Mat a, PetscBool* yes) {
  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompareAny(object(a), yes, MATSEQAIJ, MATMPIAIJ, ""));
  PetscFunctionReturn(kDone);
}

PetscErrorCode takes_distribution(Mat a, bool* yes) {
  PetscMPIInt ranks = 1;
  PetscInt rows = 0, cols = 0;
  const PetscInt *of_rows = nullptr, *of_cols = nullptr;
  PetscFunctionBegin;
  PetscCall(MatGetSize(a, &rows, &cols));
  *yes = rows > 0 && cols > 0;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm(object(a)), &ranks));
  if (ranks == 1 || !*yes) PetscFunctionReturn(kDone);
  PetscCall(MatGetOwnershipRanges(a, &of_rows));
  PetscCall(MatGetOwnershipRangesColumn(a, &of_cols));
  for (PetscMPIInt rank = 0; rank < ranks; ++rank) {
    const PetscInt even = cols / ranks * rank + std::min<PetscInt>(rank, cols % ranks);
    if (of_cols[rank] != (rows == cols ? of_rows[rank] : even)) *yes = false;
  }
  PetscFunctionReturn(kDone);
}

PetscErrorCode find_record(Mat a, AijCopy** copy) {
  PetscContainer container = nullptr;
  PetscFunctionBegin;
  *copy = nullptr;
  PetscCall(PetscObjectQuery(object(a), kName, reinterpret_cast<PetscObject*>(&container)));
  if (container != nullptr) PetscCall(PetscContainerGetPointer(container, reinterpret_cast<void**>(copy)));
  if (*copy != nullptr && (*copy)->of != a) {  // came with what was put into this matrix
    PetscCall(forget_copy(a));
    *copy = nullptr;
  }
  PetscFunctionReturn(kDone);
}

PetscErrorCode record_of(Mat a, AijCopy** copy) {
  PetscContainer container = nullptr;
  PetscFunctionBegin;
  PetscCall(find_record(a, copy));
  if (*copy != nullptr) PetscFunctionReturn(kDone);
  PetscCall(PetscNew(copy));
  **copy = AijCopy{};
  (*copy)->of = a;
  PetscCall(PetscContainerCreate(PetscObjectComm(object(a)), &container));
  PetscCall(PetscContainerSetPointer(container, *copy));
  PetscCall(PetscContainerSetUserDestroy(container, destroy_record));
  PetscCall(PetscObjectCompose(object(a), kName, object(container)));
  PetscCall(PetscContainerDestroy(&container));
  PetscFunctionReturn(kDone);
}

PetscErrorCode forget_copy(Mat a) {
  PetscFunctionBegin;
  PetscCall(PetscObjectCompose(object(a), kName, nullptr));
  PetscFunctionReturn(kDone);
}

PetscErrorCode updated_copy(Mat a, bool keep_rows, AijCopy** copy) {
  Rows rows;
  Version now;
  PetscFunctionBegin;
  PetscCall(record_of(a, copy));
  PetscCall(get_blocks(a, rows));
  PetscCall(version_of(a, rows, now));
  if ((*copy)->matrix == nullptr || !(now == (*copy)->version) || (keep_rows && !(*copy)->has_rows))
    PetscCall(bring_up_to_date(a, keep_rows, rows, **copy, now));
  PetscFunctionReturn(kDone);
}

PetscErrorCode multiply(AijCopy& copy, Vec x, double beta, Vec y) {
  const PetscScalar* from = nullptr;
  PetscScalar* to = nullptr;
  PetscInt own_x = 0, own_y = 0;
  PetscFunctionBegin;
  PetscCall(note_device(x));
  if (copy.product == nullptr) PetscCall(make_product(copy, 1, &copy.product));
  PetscCall(VecGetLocalSize(x, &own_x));
  PetscCall(VecGetLocalSize(y, &own_y));
  PetscCall(PetscLogEventBegin(events().multiply, copy.of, x, y, 0));
  PetscCall(VecGetArrayRead(x, &from));
  PetscCall(beta == 0 ? VecGetArrayWrite(y, &to) : VecGetArray(y, &to));
  const shardmat_dense of_x = dense_of(from, own_x, 1, 1), of_y = dense_of(to, own_y, 1, 1);
  PetscCall(
      check(PetscObjectComm(object(copy.of)), shardmat_product_multiply(copy.product, 1, &of_x, beta, &of_y, nullptr)));
  PetscCall(beta == 0 ? VecRestoreArrayWrite(y, &to) : VecRestoreArray(y, &to));
  PetscCall(VecRestoreArrayRead(x, &from));
  PetscCall(PetscLogFlops(2.0 * static_cast<double>(copy.nonzeros)));
  PetscCall(PetscLogEventEnd(events().multiply, copy.of, x, y, 0));
  ++copy.products;
  PetscFunctionReturn(kDone);
}

PetscErrorCode multiply_dense(AijCopy& copy, Mat b, Mat c) {
  const PetscScalar* from = nullptr;
  PetscScalar* to = nullptr;
  PetscInt columns = 0, own_b = 0, own_c = 0, leading_b = 0, leading_c = 0;
  PetscFunctionBegin;
  PetscCall(MatGetSize(b, nullptr, &columns));
  PetscCall(MatGetLocalSize(b, &own_b, nullptr));
  PetscCall(MatGetLocalSize(c, &own_c, nullptr));
  if (columns == 0) PetscFunctionReturn(kDone);
  if (copy.wide_columns != columns) {
    shardmat_product_destroy(copy.wide);
    copy.wide = nullptr;
  }
  if (copy.wide == nullptr) PetscCall(make_product(copy, columns, &copy.wide));
  copy.wide_columns = columns;
  PetscCall(PetscLogEventBegin(events().multiply_dense, copy.of, b, c, 0));
  PetscCall(MatDenseGetLDA(b, &leading_b));
  PetscCall(MatDenseGetLDA(c, &leading_c));
  PetscCall(MatDenseGetArrayRead(b, &from));
  PetscCall(MatDenseGetArrayWrite(c, &to));
  const shardmat_dense of_b = dense_of(from, own_b, columns, columns > 1 ? leading_b : 1);
  const shardmat_dense of_c = dense_of(to, own_c, columns, columns > 1 ? leading_c : 1);
  PetscCall(check(PetscObjectComm(object(copy.of)), shardmat_product_multiply(copy.wide, 1, &of_b, 0, &of_c, nullptr)));
  PetscCall(MatDenseRestoreArrayWrite(c, &to));
  PetscCall(MatDenseRestoreArrayRead(b, &from));
  PetscCall(PetscLogFlops(2.0 * static_cast<double>(copy.nonzeros) * static_cast<double>(columns)));
  PetscCall(PetscLogEventEnd(events().multiply_dense, copy.of, b, c, 0));
  ++copy.wide_products;
  PetscFunctionReturn(kDone);
}

}  // namespace shardmat::petsc
