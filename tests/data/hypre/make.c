/* Writes IJ.A.00000 … IJ.A.00002 and IJ.b.00000 … with hypre 2.26 (Debian's libhypre-dev):
     mpicc make.c -I/usr/include/hypre -lHYPRE -o make && mpirun -n 3 ./make
   A is 8 x 8 with three entries a row, b has 8. */
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <mpi.h>

int main(int argc, char** argv) {
  const int starts[] = {0, 3, 4, 8};
  HYPRE_IJMatrix a;
  HYPRE_IJVector b;
  int rank, i;
  MPI_Init(&argc, &argv);
  HYPRE_Init();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  HYPRE_IJMatrixCreate(MPI_COMM_WORLD, starts[rank], starts[rank + 1] - 1, starts[rank], starts[rank + 1] - 1, &a);
  HYPRE_IJMatrixSetObjectType(a, HYPRE_PARCSR);
  HYPRE_IJMatrixInitialize(a);
  HYPRE_IJVectorCreate(MPI_COMM_WORLD, starts[rank], starts[rank + 1] - 1, &b);
  HYPRE_IJVectorSetObjectType(b, HYPRE_PARCSR);
  HYPRE_IJVectorInitialize(b);
  for (i = starts[rank]; i < starts[rank + 1]; ++i) {
    int three = 3, columns[] = {i, (i + 3) % 8, (i + 5) % 8};
    double values[] = {4 + 0.25 * i, -1.5, i == 2 ? 0.0 : 0.125 * i}, entry = 1 + 0.5 * i;
    HYPRE_IJMatrixSetValues(a, 1, &three, &i, columns, values);
    HYPRE_IJVectorSetValues(b, 1, &i, &entry);
  }
  HYPRE_IJMatrixAssemble(a);
  HYPRE_IJVectorAssemble(b);
  HYPRE_IJMatrixPrint(a, "IJ.A");
  HYPRE_IJVectorPrint(b, "IJ.b");
  HYPRE_Finalize();
  MPI_Finalize();
  return 0;
}
