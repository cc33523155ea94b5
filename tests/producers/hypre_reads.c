/* Reads A and x, which must be in as many files as there are ranks, and prints y = A x:
     mpirun -n N hypre_reads A x y */
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_parcsr_mv.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  HYPRE_IJMatrix a;
  HYPRE_IJVector x, y;
  void *a_object, *x_object, *y_object;
  HYPRE_Int first_row, last_row, first_col, last_col, error;
  MPI_Init(&argc, &argv);
  HYPRE_Init();
  if (argc != 4) return 2;
  HYPRE_IJMatrixRead(argv[1], MPI_COMM_WORLD, HYPRE_PARCSR, &a);
  HYPRE_IJVectorRead(argv[2], MPI_COMM_WORLD, HYPRE_PARCSR, &x);
  if (HYPRE_GetError() != 0) {
    fprintf(stderr, "hypre cannot read %s or %s: error %d\n", argv[1], argv[2], (int)HYPRE_GetError());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  HYPRE_IJMatrixGetLocalRange(a, &first_row, &last_row, &first_col, &last_col);
  HYPRE_IJVectorCreate(MPI_COMM_WORLD, first_row, last_row, &y);
  HYPRE_IJVectorSetObjectType(y, HYPRE_PARCSR);
  HYPRE_IJVectorInitialize(y);
  HYPRE_IJVectorAssemble(y);
  HYPRE_IJMatrixGetObject(a, &a_object);
  HYPRE_IJVectorGetObject(x, &x_object);
  HYPRE_IJVectorGetObject(y, &y_object);
  HYPRE_ParCSRMatrixMatvec(1, a_object, x_object, 0, y_object);
  HYPRE_IJVectorPrint(y, argv[3]);
  error = HYPRE_GetError();
  HYPRE_IJMatrixDestroy(a);
  HYPRE_IJVectorDestroy(x);
  HYPRE_IJVectorDestroy(y);
  HYPRE_Finalize();
  MPI_Finalize();
  return error != 0;
}
