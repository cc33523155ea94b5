#!/usr/bin/env python3
"""petsc_peer.py FILE.petsc [options of PETSc]: solves A x = b by PETSc and tells the seconds of each part.

`shardmat convert` writes the file. b is a vector in FILE.petsc.b, or all ones.
"""
import os
import sys
import time

begun = time.perf_counter()
import petsc4py  # noqa: E402

petsc4py.init([sys.argv[0]] + sys.argv[2:])
from petsc4py import PETSc  # noqa: E402

started = time.perf_counter()
a = PETSc.Mat().create()
a.setFromOptions()
a.load(PETSc.Viewer().createBinary(sys.argv[1], 'r'))
x, b = a.createVecs()
if os.path.exists(sys.argv[1] + '.b'):
    b.load(PETSc.Viewer().createBinary(sys.argv[1] + '.b', 'r'))
else:
    b.set(1)
read = time.perf_counter()
ksp = PETSc.KSP().create()
ksp.setOperators(a)
ksp.setFromOptions()
ksp.setUp()
ksp.getPC().setUp()
PETSc.COMM_WORLD.Barrier()
made = time.perf_counter()
ksp.solve(b, x)
PETSc.COMM_WORLD.Barrier()
solved = time.perf_counter()
residual = a * x - b
norms = residual.norm(), b.norm()
if PETSc.COMM_WORLD.getRank() == 0:
    print(f'start {started - begun:.3f}, read {read - started:.3f}, set-up {made - read:.3f}, solve {solved - made:.3f} s; '
          f'{ksp.getIterationNumber()} iterations, reason {ksp.getConvergedReason()}, residual {norms[0] / norms[1]:.1e} of b')
