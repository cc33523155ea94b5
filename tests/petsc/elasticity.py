"""Linear elasticity with dolfinx: a clamped beam under its own weight. It knows nothing of Shardmat; options of PETSc are
read from PETSC_OPTIONS. Prints the type of the matrix, the iterations, the reason, and the norm of the displacement."""

import numpy as np
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI
from petsc4py import PETSc

domain = mesh.create_box(MPI.COMM_WORLD, [np.zeros(3), np.array([4.0, 1.0, 1.0])], [12, 4, 4])
space = fem.VectorFunctionSpace(domain, ("Lagrange", 1))
clamped = fem.locate_dofs_geometrical(space, lambda x: np.isclose(x[0], 0))
condition = fem.dirichletbc(np.zeros(3, dtype=PETSc.ScalarType), clamped, space)
u, v = ufl.TrialFunction(space), ufl.TestFunction(space)


def strain(w):
    return ufl.sym(ufl.grad(w))


def stress(w):
    return ufl.tr(strain(w)) * ufl.Identity(3) + 2 * strain(w)


weight = fem.Constant(domain, np.array([0.0, 0.0, -0.01]))
a = fem.form(ufl.inner(stress(u), strain(v)) * ufl.dx)
load = fem.form(ufl.inner(weight, v) * ufl.dx)
A = fem.petsc.create_matrix(a)
A.setFromOptions()
fem.petsc.assemble_matrix(A, a, bcs=[condition])
A.assemble()
A.setOption(PETSc.Mat.Option.SPD, True)
b = fem.petsc.assemble_vector(load)
fem.petsc.apply_lifting(b, [a], bcs=[[condition]])
b.ghostUpdate(addv=PETSc.InsertMode.ADD, mode=PETSc.ScatterMode.REVERSE)
fem.petsc.set_bc(b, [condition])

ksp = PETSc.KSP().create(domain.comm)
ksp.setOperators(A)
ksp.setType("cg")
ksp.setTolerances(rtol=1e-8)
ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
ksp.setFromOptions()
x = b.duplicate()
ksp.solve(b, x)
norm = x.norm()
if domain.comm.rank == 0:
    print(f"type {A.getType()} iterations {ksp.getIterationNumber()} reason {ksp.getConvergedReason()} norm {norm:.6e}")
