/* Writes the files beside this one with PETSc 3.18 (Debian's petsc-dev, 32-bit indices, real):
     mpicc make.c $(pkg-config --cflags --libs petsc) -o make && ./make
   objects.petsc: a sparse Mat of 7 x 5 with an explicit zero and an empty row, a Vec of 5, a Mat of 3 x 3, a Vec of 7.
   dense.petsc: a dense Mat of 4 x 3. block.petsc: a Mat of 6 x 6 in blocks of 2, with its .info. */
#include <petscmat.h>

int main(int argc, char** argv) {
  Mat a, small, dense, block;
  Vec x, y;
  PetscViewer out;
  PetscInt i, j;
  PetscInitialize(&argc, &argv, NULL, NULL);

  MatCreateSeqAIJ(PETSC_COMM_SELF, 7, 5, 5, NULL, &a);
  for (i = 0; i < 7; ++i)
    for (j = 0; j < 5; ++j)
      if (i != 3 && (i + j) % 2 == 0) MatSetValue(a, i, j, i == 2 && j == 2 ? 0.0 : 1.0 / (1 + i) - j, INSERT_VALUES);
  MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY);
  MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY);
  MatCreateSeqAIJ(PETSC_COMM_SELF, 3, 3, 1, NULL, &small);
  for (i = 0; i < 3; ++i) MatSetValue(small, i, 2 - i, i + 0.1, INSERT_VALUES);
  MatAssemblyBegin(small, MAT_FINAL_ASSEMBLY);
  MatAssemblyEnd(small, MAT_FINAL_ASSEMBLY);
  VecCreateSeq(PETSC_COMM_SELF, 5, &x);
  for (i = 0; i < 5; ++i) VecSetValue(x, i, 0.1 * i - 0.2, INSERT_VALUES);
  VecAssemblyBegin(x);
  VecAssemblyEnd(x);
  VecCreateSeq(PETSC_COMM_SELF, 7, &y);
  MatMult(a, x, y);

  PetscViewerBinaryOpen(PETSC_COMM_SELF, "objects.petsc", FILE_MODE_WRITE, &out);
  MatView(a, out);
  VecView(x, out);
  MatView(small, out);
  VecView(y, out);
  PetscViewerDestroy(&out);

  MatCreateSeqDense(PETSC_COMM_SELF, 4, 3, NULL, &dense);
  for (i = 0; i < 4; ++i)
    for (j = 0; j < 3; ++j) MatSetValue(dense, i, j, 10 * i + j + 0.5, INSERT_VALUES);
  MatAssemblyBegin(dense, MAT_FINAL_ASSEMBLY);
  MatAssemblyEnd(dense, MAT_FINAL_ASSEMBLY);
  PetscViewerBinaryOpen(PETSC_COMM_SELF, "dense.petsc", FILE_MODE_WRITE, &out);
  PetscViewerPushFormat(out, PETSC_VIEWER_NATIVE);
  MatView(dense, out);
  PetscViewerDestroy(&out);

  MatCreateSeqBAIJ(PETSC_COMM_SELF, 2, 6, 6, 2, NULL, &block);
  for (i = 0; i < 6; ++i)
    for (j = 0; j < 6; ++j)
      if ((i / 2 + j / 2) % 2 == 0) MatSetValue(block, i, j, i - 0.25 * j, INSERT_VALUES);
  MatAssemblyBegin(block, MAT_FINAL_ASSEMBLY);
  MatAssemblyEnd(block, MAT_FINAL_ASSEMBLY);
  PetscViewerBinaryOpen(PETSC_COMM_SELF, "block.petsc", FILE_MODE_WRITE, &out);
  MatView(block, out);
  PetscViewerDestroy(&out);
  return PetscFinalize();
}
