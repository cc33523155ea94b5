#!/usr/bin/env python3
"""eigen_peer.py scipy|slepc K.h5 M.h5 COUNT [options of SLEPc]: the lowest modes of K x = λ M x by a peer of `shardmat eigen`.

`shardmat generate` and `shardmat partition` write the files. Rows of K that have a diagonal alone state known values and are
left out, as `shardmat eigen` does. GAMG gets the rigid-body modes if K.h5 tells where the nodes lie. scipy: eigsh about 0 with
SuperLU's factors. slepc runs on the ranks of mpirun, and the options choose the method. Residuals are those of λ |M x|.
"""
import sys
import time

import h5py
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

TOLERANCE = 1e-8


def read(name):
    with h5py.File(name, "r") as file:
        pointers = file["pointers_to_1"][:]
        parts = file["values"][:], file["indices_1"][:], pointers
        places = file["shardmat/coordinates"][:] if "shardmat/coordinates" in file else None
        return sp.csr_matrix(parts, shape=(len(pointers) - 1,) * 2), places


def free_rows(k):
    alone = k - sp.diags(k.diagonal())
    alone.eliminate_zeros()
    return np.flatnonzero(np.diff(alone.indptr) > 0)


def by_scipy(k, m, count):
    options = dict(permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True})
    factors = scipy.sparse.linalg.splu(k.tocsc(), **options)
    inverse = scipy.sparse.linalg.LinearOperator(k.shape, factors.solve)
    values, vectors = scipy.sparse.linalg.eigsh(k, count, m, sigma=0, OPinv=inverse, tol=TOLERANCE)
    left = np.linalg.norm(k @ vectors - m @ vectors * values, axis=0) / (values * np.linalg.norm(m @ vectors, axis=0))
    return values, left.max(), "", time.process_time()


def by_slepc(k, m, count, places):
    import slepc4py

    slepc4py.init([sys.argv[0]] + sys.argv[5:])
    from petsc4py import PETSc
    from slepc4py import SLEPc

    ranks = PETSc.COMM_WORLD.tompi4py()
    size = k.shape[0] // len(places) if places is not None else 1
    nodes = k.shape[0] // size
    first, end = (size * (nodes * (ranks.rank + i) // ranks.size) for i in (0, 1))

    def matrix(of):
        mine = of[first:end]
        made = PETSc.Mat().createAIJ(((end - first, k.shape[0]),) * 2, bsize=size, csr=(mine.indptr, mine.indices, mine.data))
        made.setOption(PETSc.Mat.Option.SYMMETRIC, True)
        return made

    stiffness, mass = matrix(k), matrix(m)
    if size == 3:
        at = PETSc.Vec().createMPI((end - first, k.shape[0]), bsize=3)
        at.array[:] = places[first // 3:end // 3].ravel()
        stiffness.setNearNullSpace(PETSc.NullSpace().createRigidBody(at))
    eps = SLEPc.EPS().create()
    eps.setOperators(stiffness, mass)
    eps.setProblemType(SLEPc.EPS.ProblemType.GHEP)
    eps.setDimensions(count)
    eps.setTolerances(TOLERANCE, 10000)
    eps.setWhichEigenpairs(SLEPc.EPS.Which.SMALLEST_REAL)
    eps.setFromOptions()
    eps.solve()
    found = min(count, eps.getConverged())
    values = np.array([eps.getEigenvalue(i).real for i in range(found)])
    left, x, mx = 0, stiffness.createVecRight(), stiffness.createVecRight()
    for i in range(found):
        eps.getEigenvector(i, x)
        mass.mult(x, mx)
        left = max(left, (stiffness * x - float(values[i]) * mx).norm() / (values[i] * mx.norm()))
    seconds = ranks.allreduce(time.process_time())
    return (values, left, f"{eps.getType()}, {eps.getIterationNumber()} iterations, ", seconds) if ranks.rank == 0 else None


def main():
    begun = time.perf_counter()
    peer, count = sys.argv[1], int(sys.argv[4])
    (k, places), (m, _) = read(sys.argv[2]), read(sys.argv[3])
    free = free_rows(k)
    if places is not None:
        size = k.shape[0] // len(places)
        held = np.setdiff1d(np.arange(k.shape[0]), free)
        free = np.flatnonzero(~np.isin(np.arange(k.shape[0]) // size, held // size))  # whole nodes
        places = places[free[::size] // size]
    k, m = k[free][:, free], m[free][:, free]
    told = by_scipy(k, m, count) if peer == "scipy" else by_slepc(k, m, count, places)
    if told is None:
        return
    values, left, method, seconds = told
    print(f"{peer}: {method}{len(values)} of {count} modes of {k.shape[0]} unknowns in {time.perf_counter() - begun:.1f} s, "
          f"{seconds:.1f} s of CPU; residuals up to {left:.1e}\n  " + " ".join(f"{value:.10g}" for value in values))


main()
