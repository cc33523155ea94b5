/* Matrices of -mat_type shardmat: each product is compared with the same AIJ matrix's, after everything that PETSc can do to
 * a matrix. The plug-in is loaded by -dll_append. */
#include <string.h>

#include "check.h"

static PetscErrorCode assemble(MPI_Comm comm, PetscInt rows, PetscInt cols, PetscInt own_cols, Mat* a) {
  PetscInt first, last;
  PetscFunctionBeginUser;
  PetscCall(MatCreate(comm, a));
  PetscCall(MatSetSizes(*a, PETSC_DECIDE, own_cols, rows, cols));
  PetscCall(MatSetFromOptions(*a));
  PetscCall(MatSetUp(*a));
  PetscCall(MatSetOption(*a, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*a, &first, &last));
  for (PetscInt i = first; i < last; ++i)
    for (PetscInt k = 0; k < 6; ++k)
      PetscCall(MatSetValue(*a, i, k < 2 ? (i + k) % cols : (i * 13 + k * 29) % cols, number(i, k), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*a, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*a, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(0);
}

/* The same matrix as AIJ. */
static PetscErrorCode plain(Mat a, Mat* b) {
  PetscMPIInt ranks;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)a), &ranks));
  PetscCall(MatConvert(a, ranks == 1 ? MATSEQAIJ : MATMPIAIJ, MAT_INITIAL_MATRIX, b));
  MatType type;
  PetscCall(MatGetType(*b, &type));
  CHECK(strcmp(type, ranks == 1 ? MATSEQAIJ : MATMPIAIJ) == 0);
  PetscFunctionReturn(0);
}

static PetscErrorCode is_ours(Mat a, PetscBool* yes) {
  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)a, yes, "seqaijshardmat", "mpiaijshardmat", ""));
  PetscFunctionReturn(0);
}

/* A·x of both; `ours`: through Shardmat, which the event tells. */
static PetscErrorCode compare_at(int line, Mat a, PetscBool ours) {
  Mat b;
  Vec x, y, expected;
  PetscInt before = 0, after = 0;
  PetscBool same = PETSC_FALSE;
  PetscFunctionBeginUser;
  PetscCall(plain(a, &b));
  PetscCall(MatCreateVecs(a, &x, &y));
  PetscCall(VecDuplicate(y, &expected));
  PetscCall(fill(x, 3));
  PetscCall(MatMult(b, x, expected));
  PetscCall(count_of("MatMultShardmat", &before));
  PetscCall(MatMult(a, x, y));
  PetscCall(count_of("MatMultShardmat", &after));
  CHECK_AT(line, after - before == (ours ? 1 : 0));
  PetscCall(close_to(y, expected, &same));
  CHECK_AT(line, same);
  PetscCall(VecDestroy(&expected));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&b));
  PetscFunctionReturn(0);
}
#define compare(a, ours) compare_at(__LINE__, a, ours)

/* z = y + A·x with all vectors apart, with z = y, and with y = x. */
static PetscErrorCode adds(Mat a) {
  Mat b;
  Vec x, y, z, expected;
  PetscBool same = PETSC_FALSE;
  PetscFunctionBeginUser;
  PetscCall(plain(a, &b));
  PetscCall(MatCreateVecs(a, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecDuplicate(y, &expected));
  PetscCall(fill(x, 3));
  PetscCall(fill(y, 4));
  PetscCall(MatMultAdd(b, x, y, expected));
  PetscCall(MatMultAdd(a, x, y, z));
  PetscCall(close_to(z, expected, &same));
  CHECK(same);
  PetscCall(MatMultAdd(a, x, y, y));
  PetscCall(close_to(y, expected, &same));
  CHECK(same);
  PetscCall(MatMultAdd(b, x, x, expected));
  PetscCall(MatMultAdd(a, x, x, z));
  PetscCall(close_to(z, expected, &same));
  CHECK(same);
  PetscCall(MatMultTransposeAdd(b, x, x, expected)); /* stays AIJ's */
  PetscCall(MatMultTransposeAdd(a, x, x, z));
  PetscCall(close_to(z, expected, &same));
  CHECK(same);
  PetscCall(VecDestroy(&expected));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&b));
  PetscFunctionReturn(0);
}

/* How often the whole was copied, and values alone: what the view of the matrix tells. */
static PetscErrorCode copies_of(Mat a, int* copies, int* new_values) {
  char text[1024] = "", *at;
  int rank;
  FILE* file = NULL;
  PetscViewer viewer;
  const char* name = "copies.txt";
  PetscFunctionBeginUser;
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_WORLD, name, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO));
  PetscCall(MatView(a, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (rank == 0) {
    file = fopen(name, "r");
    text[file == NULL ? 0 : fread(text, 1, sizeof text - 1, file)] = '\0';
    if (file != NULL) fclose(file);
    remove(name);
  }
  PetscCallMPI(MPI_Bcast(text, sizeof text, MPI_CHAR, 0, PETSC_COMM_WORLD));
  *copies = *new_values = -1;
  at = strstr(text, "copies=");
  CHECK(at != NULL && sscanf(at, "copies=%d, new values=%d", copies, new_values) == 2);
  PetscFunctionReturn(0);
}

static PetscErrorCode values_change(Mat a) {
  Vec scale;
  int copies, values, copies_then, values_then;
  PetscFunctionBeginUser;
  PetscCall(copies_of(a, &copies, &values));
  PetscCall(MatSetOption(a, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscCall(MatSetOption(a, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  int rank;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (rank == 0) PetscCall(MatSetValue(a, 50, 50, 5, INSERT_VALUES)); /* with two ranks the other one's row */
  PetscCall(MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY));
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(MatScale(a, 3));
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(MatCreateVecs(a, &scale, NULL));
  PetscCall(fill(scale, 9));
  PetscCall(MatDiagonalScale(a, scale, scale));
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(VecDestroy(&scale));
  PetscCall(MatShift(a, 0.5));
  PetscCall(compare(a, PETSC_TRUE));
  const PetscInt zeroed[] = {3, 17};
  PetscCall(MatZeroRowsColumns(a, 2, zeroed, 2, NULL, NULL));
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(MatStoreValues(a));
  PetscCall(MatScale(a, 0.1));
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(MatRetrieveValues(a));
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(copies_of(a, &copies_then, &values_then));
  CHECK(copies_then == copies && values_then == values + 7);
  PetscCall(compare(a, PETSC_TRUE)); /* nothing new */
  PetscCall(copies_of(a, &copies, &values));
  CHECK(copies_then == copies && values_then == values);
  PetscFunctionReturn(0);
}

static PetscErrorCode pattern_changes(Mat a) {
  int copies, values, copies_then, values_then, rank;
  PetscFunctionBeginUser;
  PetscCall(copies_of(a, &copies, &values));
  PetscCall(MatSetOption(a, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (rank == 0) PetscCall(MatSetValue(a, 2, 77, 1, INSERT_VALUES)); /* of one rank only */
  PetscCall(MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY));
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(copies_of(a, &copies_then, &values_then));
  CHECK(copies_then == copies + 1 && values_then == values);
  PetscFunctionReturn(0);
}

/* Changes and destroys `expected`. */
static PetscErrorCode near(Mat a, Mat expected, PetscBool* yes) {
  PetscReal size, norm;
  PetscFunctionBeginUser;
  PetscCall(MatNorm(expected, NORM_FROBENIUS, &size));
  PetscCall(MatAXPY(expected, -1, a, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(expected, NORM_FROBENIUS, &norm));
  PetscCall(MatDestroy(&expected));
  *yes = size > 0 && norm <= 1e-13 * size ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(0);
}

static PetscErrorCode multiplies_dense(Mat a) {
  Mat b, x, left, y = NULL, z, expected;
  PetscInt cols, own, before = 0, after = 0;
  PetscBool same = PETSC_FALSE;
  PetscFunctionBeginUser;
  PetscCall(plain(a, &b));
  PetscCall(MatGetSize(a, NULL, &cols));
  PetscCall(MatGetLocalSize(a, NULL, &own));
  for (PetscInt columns = 1; columns <= 5; columns += 4) {
    PetscCall(MatCreateDense(PETSC_COMM_WORLD, own, PETSC_DECIDE, cols, columns, NULL, &x));
    PetscCall(MatSetRandom(x, NULL));
    for (int again = 0; again < 2; ++again) { /* the second time with new values, into the same matrix */
      PetscCall(MatMatMult(b, x, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &expected));
      PetscCall(count_of("MatMMultShardmat", &before));
      PetscCall(MatMatMult(a, x, again ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &y));
      PetscCall(count_of("MatMMultShardmat", &after));
      CHECK(after == before + 1);
      PetscCall(near(y, expected, &same));
      CHECK(same);
      PetscCall(MatScale(a, 2));
      PetscCall(MatScale(b, 2));
    }
    PetscCall(MatTransposeMatMult(a, x, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &z)); /* AIJ's */
    PetscCall(MatTransposeMatMult(b, x, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &expected));
    PetscCall(near(z, expected, &same));
    CHECK(same);
    PetscCall(MatDestroy(&z));
    PetscCall(MatTranspose(x, MAT_INITIAL_MATRIX, &left));
    PetscCall(MatMatMult(left, a, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &z)); /* AIJ transposes both */
    PetscCall(MatMatMult(left, b, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &expected));
    PetscCall(near(z, expected, &same));
    CHECK(same);
    PetscCall(MatDestroy(&z));
    PetscCall(MatDestroy(&left));
    PetscCall(MatDestroy(&y));
    PetscCall(MatDestroy(&x));
  }
  PetscCall(MatDestroy(&b));
  PetscFunctionReturn(0);
}

/* What PETSc makes of a matrix of ours can be used like it. */
static PetscErrorCode makes_others(Mat a) {
  Mat b, product, part;
  IS rows;
  PetscInt first, last;
  PetscBool ours;
  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(a, MAT_COPY_VALUES, &b));
  PetscCall(is_ours(b, &ours));
  CHECK(ours);
  PetscCall(MatScale(b, 2)); /* does not touch `a` */
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(compare(b, PETSC_TRUE));
  PetscCall(MatMatMult(a, b, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &product));
  PetscCall(is_ours(product, &ours));
  PetscCall(compare(product, ours));
  PetscCall(MatMatMult(a, b, MAT_REUSE_MATRIX, PETSC_DEFAULT, &product));
  PetscCall(compare(product, ours));
  PetscCall(MatDestroy(&product));
  PetscCall(MatPtAP(a, b, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &product));
  PetscCall(is_ours(product, &ours));
  PetscCall(compare(product, ours));
  PetscCall(MatDestroy(&product));
  PetscCall(MatTranspose(a, MAT_INITIAL_MATRIX, &product));
  PetscCall(is_ours(product, &ours));
  PetscCall(compare(product, ours));
  PetscCall(MatDestroy(&product));
  PetscCall(MatTranspose(b, MAT_INPLACE_MATRIX, &b)); /* another pattern in the same header */
  PetscCall(compare(b, PETSC_TRUE));
  PetscCall(MatGetOwnershipRange(a, &first, &last));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (last - first) / 2, first, 2, &rows));
  PetscCall(MatCreateSubMatrix(a, rows, rows, MAT_INITIAL_MATRIX, &part));
  PetscCall(is_ours(part, &ours));
  PetscCall(compare(part, ours));
  PetscCall(MatDestroy(&part));
  PetscCall(ISDestroy(&rows));
  PetscCall(MatDestroy(&b));
  PetscFunctionReturn(0);
}

static PetscErrorCode converts(Mat a) {
  Mat b, c;
  PetscBool ours;
  PetscFunctionBeginUser;
  PetscCall(plain(a, &b));
  PetscCall(MatConvert(b, "shardmat", MAT_INITIAL_MATRIX, &c));
  PetscCall(is_ours(c, &ours));
  CHECK(ours);
  PetscCall(compare(c, PETSC_TRUE));
  PetscCall(MatDestroy(&c));
  PetscCall(MatSetType(b, "shardmat")); /* in place, because the matrix is assembled */
  PetscCall(is_ours(b, &ours));
  CHECK(ours);
  PetscCall(compare(b, PETSC_TRUE));
  PetscMPIInt ranks;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  PetscCall(MatConvert(b, ranks == 1 ? MATSEQAIJ : MATMPIAIJ, MAT_INPLACE_MATRIX, &b));
  PetscCall(compare(b, PETSC_FALSE));
  PetscCall(MatDestroy(&b));
  const MatType others[] = {MATBAIJ, MATDENSE};
  for (int i = 0; i < 2; ++i) {
    PetscCall(MatConvert(a, others[i], MAT_INITIAL_MATRIX, &b));
    PetscCall(MatMultTransposeEqual(a, b, 2, &ours));
    CHECK(ours);
    PetscCall(MatDestroy(&b));
  }
  PetscCall(MatDuplicate(a, MAT_COPY_VALUES, &b));
  PetscCall(MatConvert(b, MATDENSE, MAT_INPLACE_MATRIX, &b));
  PetscCall(MatMultEqual(a, b, 2, &ours));
  CHECK(ours);
  PetscCall(MatDestroy(&b));
  PetscFunctionReturn(0);
}

/* Columns as PETSC_DECIDE distributes them, and otherwise; a rank without rows; a matrix without rows. */
static PetscErrorCode takes_shapes(void) {
  Mat a;
  PetscMPIInt rank, ranks;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  PetscCall(assemble(PETSC_COMM_WORLD, 101, 63, PETSC_DECIDE, &a));
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(MatDestroy(&a));
  PetscCall(assemble(PETSC_COMM_WORLD, 101, 63, ranks == 1 ? 63 : rank == 0 ? 40 : rank == 1 ? 23 : 0, &a));
  PetscCall(compare(a, ranks == 1 ? PETSC_TRUE : PETSC_FALSE));
  PetscCall(MatDestroy(&a));
  PetscCall(assemble(PETSC_COMM_WORLD, 1, 1, PETSC_DECIDE, &a));
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(MatDestroy(&a));
  PetscCall(assemble(PETSC_COMM_SELF, 30, 30, PETSC_DECIDE, &a));
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(MatDestroy(&a));
  Vec x, y;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &a));
  PetscCall(MatSetSizes(a, 0, 0, 0, 0));
  PetscCall(MatSetFromOptions(a));
  PetscCall(MatSetUp(a));
  PetscCall(MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(a, &x, &y));
  PetscCall(MatMult(a, x, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&a));
  PetscFunctionReturn(0);
}

/* A communicator of the program, that comes and goes. */
static PetscErrorCode takes_communicators(void) {
  MPI_Comm comm;
  Mat a;
  PetscFunctionBeginUser;
  for (int again = 0; again < 2; ++again) {
    PetscCallMPI(MPI_Comm_dup(PETSC_COMM_WORLD, &comm));
    PetscCall(assemble(comm, 40, 40, PETSC_DECIDE, &a));
    PetscCall(compare(a, PETSC_TRUE));
    PetscCall(MatDestroy(&a));
    PetscCallMPI(MPI_Comm_free(&comm));
  }
  PetscFunctionReturn(0);
}

int main(int argc, char** argv) {
  Mat a;
  PetscBool ours;
  int status;
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(assemble(PETSC_COMM_WORLD, 100, 100, PETSC_DECIDE, &a));
  PetscCall(is_ours(a, &ours));
  CHECK(ours);
  PetscCall(compare(a, PETSC_TRUE));
  PetscCall(adds(a));
  PetscCall(values_change(a));
  PetscCall(pattern_changes(a));
  PetscCall(multiplies_dense(a));
  PetscCall(makes_others(a));
  PetscCall(converts(a));
  PetscCall(MatDestroy(&a));
  PetscCall(takes_shapes());
  PetscCall(takes_communicators());
  PetscCall(finish(&status));
  return status;
}
