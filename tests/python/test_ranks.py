#!/usr/bin/env python3
"""The Python package on the ranks of mpi4py: every rank runs all of this, and says how far it came if anything is wrong.

On the host, or with TEST_BACKEND=cuda on GPUs.
"""

import os
import signal
import sys
import traceback

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI

import shardmat
from checks import elastic_plate, refused, rigid_modes

comm = MPI.COMM_WORLD
N = 200
A = (sp.random(N, N, 0.03, random_state=1) + 4 * sp.eye(N)).tocsr()
FIRST, LAST = N * comm.rank // comm.size, N * (comm.rank + 1) // comm.size
X = np.random.default_rng(2).random((N, 3))


def has_one_owner(context):
    return comm.allreduce(not context.info()["feeder"]) == 1


def penalty_rows(context):
    """Rows that state known values; new values make other rows of them, with refresh() and without."""
    rows = np.arange(FIRST, LAST)
    base = sp.csr_matrix(sp.diags([-1.0, 2.5, -1.5], [-1, 0, 1], shape=(N, N)))
    right = np.random.default_rng(5).standard_normal((N, 2))

    def with_known(known):
        a = base.tolil()
        for i in known:
            a[i, i] = 1e30
        return sp.csr_matrix(a)

    def expected(a, known, b):
        free = np.setdiff1d(np.arange(N), known)
        x = b / a.diagonal()[:, None]
        x[free] = np.linalg.solve(a[free][:, free].toarray(), b[free] - a[free][:, known] @ x[known])
        return x

    first, second = np.array([0, 7, N // 2, N - 1]), np.array([5, 7, 100])
    with shardmat.Matrix.from_rows(with_known(first)[FIRST:LAST], context=context, updatable=True) as m:
        for preconditioner in ("none", "jacobi"):
            m.update_values(with_known(first)[FIRST:LAST].data)
            solver = m.solver("gmres", preconditioner, columns=2, rtol=1e-12)
            for known, refreshes in ((first, False), (second, True), ([], False), (first, False)):
                a = with_known(known)
                m.update_values(a[FIRST:LAST].data)
                if refreshes:
                    solver.refresh()
                b = right.copy()
                b[known] *= 1e30
                x = solver.solve(b[FIRST:LAST])
                np.testing.assert_allclose(x, expected(a, known, b)[FIRST:LAST], atol=1e-9)
                assert [result["penalty_rows"] for result in solver.results] == [len(known)] * 2, solver.results
                np.testing.assert_allclose(m @ right[FIRST:LAST, 0], (a @ right)[FIRST:LAST, 0], rtol=1e-12, atol=1e-12)
        keep = m.solver("gmres", "jacobi", penalty_rows="keep")
        keep.solve(np.ones(rows.size))
        assert keep.results[0]["penalty_rows"] == 0
        m.update_values(base[FIRST:LAST].data)
        refused(ValueError, "no penalty rows", lambda: m.solver("gmres", penalty_rows="known"))


def own_rows(context):
    own = A[FIRST:LAST]
    for method in (None, "nnz"):
        with shardmat.Matrix.from_rows(own, context=context, method=method, updatable=True) as m:
            assert m.shape == (N, N) and m.own_shape == (LAST - FIRST,) * 2
            for _ in range(2):
                np.testing.assert_allclose(m @ X[FIRST:LAST], (A @ X)[FIRST:LAST], atol=1e-12)
                np.testing.assert_allclose(m @ X[FIRST:LAST, 0], (A @ X)[FIRST:LAST, 0], atol=1e-12)
            y = np.ones((LAST - FIRST, 3))
            m.product(3).multiply(X[FIRST:LAST], out=y, alpha=2, beta=3)
            np.testing.assert_allclose(y, 2 * (A @ X)[FIRST:LAST] + 3, atol=1e-12)
            m.update_values(2 * own.data)
            np.testing.assert_allclose(m @ X[FIRST:LAST], 2 * (A @ X)[FIRST:LAST], atol=1e-12)
            np.testing.assert_allclose(m.T @ X[FIRST:LAST], 2 * (A.T @ X)[FIRST:LAST], atol=1e-12)
            np.testing.assert_allclose(m.T @ X[FIRST:LAST, 0], 2 * (A.T @ X)[FIRST:LAST, 0], atol=1e-12)
            y = np.ones((LAST - FIRST, 3))
            m.T.product(3).multiply(X[FIRST:LAST], out=y, alpha=2, beta=3)
            np.testing.assert_allclose(y, 4 * (A.T @ X)[FIRST:LAST] + 3, atol=1e-12)


def node_blocks(context):
    """Three unknowns on each node of a line: parts that a partitioner makes keep nodes whole, and those of the caller may not."""
    nodes, rng = 43, np.random.default_rng(8)
    n = 3 * nodes
    a = sp.kron(sp.diags([1, 1, 1], [-1, 0, 1], shape=(nodes, nodes)), np.ones((3, 3)), format="csr")
    a.data = rng.uniform(-1, 1, a.nnz)
    a = sp.csr_matrix(a + a.T)
    a = sp.csr_matrix(a + sp.diags(np.asarray(abs(a).sum(axis=1)).ravel() + rng.uniform(0, 3, n)))
    cuts = [0, *(n * rank // comm.size + 1 for rank in range(1, comm.size)), n]  # within nodes, of several ranks
    first, last = cuts[comm.rank], cuts[comm.rank + 1]
    b = rng.standard_normal(n)

    def iterations(m, preconditioner="block_jacobi", **options):
        solver = m.solver("cg", preconditioner, **options)
        x = solver.solve(b[first:last])
        np.testing.assert_allclose(x, np.linalg.solve(a.toarray(), b)[first:last], atol=1e-6)
        return solver.results[0]["iterations"]

    one_rank = shardmat.Context(comm=MPI.COMM_SELF, backend="host")
    with shardmat.Matrix.from_rows(a, context=one_rank) as m:
        solver = m.solver("cg", "block_jacobi")
        solver.solve(b)
        expected = solver.results[0]["iterations"]
    every = a.tocoo()
    mine = slice(comm.rank, None, comm.size)
    for options in ({}, {"node_block_size": 3}):
        for method in ("nnz", "rows"):
            for m in (shardmat.Matrix.from_rows(a[first:last], context=context, method=method, **options),
                      shardmat.Matrix.from_triplets(every.row[mine], every.col[mine], every.data[mine], a.shape, first_row=first,
                                                    own_rows=last - first, context=context, method=method, **options)):
                assert m.info()["node_block_size"] == 3
                assert iterations(m) == iterations(m, node_block_size=3) == expected
                assert iterations(m, node_block_size=1) == iterations(m, "jacobi") > expected
    m = shardmat.Matrix.from_rows(a[first:last], context=context)
    assert len(set(comm.allgather(m.info()["node_block_size"]))) == 1
    owners_cut_nodes = comm.size > 1 and not has_one_owner(context)
    assert iterations(m) == (iterations(m, "jacobi") if owners_cut_nodes else expected)
    refused(Exception, "whole number of nodes of 2", lambda: shardmat.Matrix.from_rows(a[first:last], context=context, node_block_size=2))
    refused(Exception, "whole number of nodes of 2", lambda: m.solver("cg", "block_jacobi", node_block_size=2))


def multigrid(context):
    """Each rank gives the coordinates of its own rows' nodes. They go where the rows go: to an owner, or to other ranks."""
    if context.info()["backend"] != "host":
        return
    a, xyz = elastic_plate(80, 4)
    modes, nodes = rigid_modes(xyz), len(xyz)
    cuts = [nodes * (rank * rank + rank) // (comm.size * (comm.size + 1)) for rank in range(comm.size + 1)]
    first, last = cuts[comm.rank], cuts[comm.rank + 1]
    own, b = slice(2 * first, 2 * last), np.ones(2 * nodes)
    for method in (None, "nnz"):
        with shardmat.Matrix.from_rows(a[own], context=context, method=method) as m:
            def iterations(**options):
                solver = m.solver(preconditioner="multigrid", coarse_size=30, inner="f64", **options)
                x = np.concatenate(comm.allgather(solver.solve(b[own])))
                np.testing.assert_allclose(a @ x, b, atol=1e-5)
                levels = comm.allgather(solver.levels)
                assert len(levels[0]) > 2 and all(one == levels[0] for one in levels), levels
                solver.refresh()
                assert [level["unknowns"] for level in solver.levels] == [level["unknowns"] for level in levels[0]]
                return solver.results[0]["iterations"]

            few, many = iterations(coordinates=xyz[first:last]), iterations()
            assert many > 1.5 * few, (few, many)
            # In the order of other ranks' rows they are of no use.
            assert iterations(coordinates=xyz[::-1][first:last], near_null_space="rigid") > 1.5 * few
            assert abs(iterations(near_null_space=modes[own]) - few) <= 1
            refused(ValueError, "nodes of 2 unknowns",
                    lambda: m.solver(preconditioner="multigrid", coordinates=xyz[first:last - (comm.rank == comm.size - 1)]))
            if comm.size > 1:
                some = xyz[first:last] if comm.rank == 0 else None
                refused(ValueError, "on this rank dimensions is", lambda: m.solver(preconditioner="multigrid", coordinates=some))
    odd = 2 * first + (comm.rank > 0)
    with shardmat.Matrix.from_rows(a[odd:2 * last + (comm.rank < comm.size - 1)], context=context, node_block_size=2) as m:
        if comm.size > 1:
            refused(ValueError, "are not whole nodes of 2 unknowns",
                    lambda: m.solver(preconditioner="multigrid", coordinates=xyz[first:last]))


def factors(context):
    """They stay, and are made anew from new values."""
    own, b = A[FIRST:LAST], (A @ X)[FIRST:LAST]
    with shardmat.Matrix.from_rows(own, context=context, updatable=True) as m:
        with m.solver("direct", columns=3, rtol=1e-12) as solver:
            for scale in (1, -2):
                if scale != 1:
                    m.update_values(scale * own.data)
                    solver.refresh()
                np.testing.assert_allclose(solver.solve(b), X[FIRST:LAST] / scale, atol=1e-9)
                np.testing.assert_allclose(solver.solve(2 * b), 2 * X[FIRST:LAST] / scale, atol=1e-9)
        np.testing.assert_allclose(shardmat.spsolve(m, b), X[FIRST:LAST] / -2, atol=1e-9)


def different_options(context):
    """What ranks were given differently is named, on all ranks, and they go on together."""
    own, last = A[FIRST:LAST], comm.rank == comm.size - 1
    if comm.size == 1:
        return
    refused(Exception, "exchange is", lambda: shardmat.Matrix.from_rows(own, context=context, exchange="halo" if last else "allgather"))
    m = shardmat.Matrix.from_rows(own, context=context)
    refused(Exception, "rtol is", lambda: m.solve(X[FIRST:LAST, 0], solver="bicgstab", rtol=1e-3 if last else 1e-6))
    refused(Exception, "solver is gmres", lambda: m.solve(X[FIRST:LAST, 0], solver="gmres" if last else "bicgstab"))
    refused(Exception, "drop_rows is", lambda: shardmat.Matrix.from_rows(own, context=context, drop_rows=last))
    changing = shardmat.Matrix.from_rows(own, context=context, updatable=True)
    refused(Exception, "diagonal is", lambda: changing.zero_rows_columns([3], 2 if last else 1))
    m.product(2)
    np.testing.assert_allclose(m @ X[FIRST:LAST], (A @ X)[FIRST:LAST], atol=1e-12)


def arrays_of_the_context(context):
    """Memory of the device, also on a feeder."""
    m = shardmat.Matrix.from_rows(A[FIRST:LAST], context=context)
    middle, y = shardmat.empty((LAST - FIRST, 3), context=context), np.empty((LAST - FIRST, 3))
    assert (middle.__dlpack_device__() == (1, 0)) == (context.info()["backend"] == "host")
    m.product(3).multiply(X[FIRST:LAST], out=middle)
    m.product(3).multiply(middle, out=y)
    np.testing.assert_allclose(y, (A @ (A @ X))[FIRST:LAST], atol=1e-12)


def triplets(context):
    every = A.tocoo()
    mine = slice(comm.rank, None, comm.size)  # whatever rank owns the rows
    m = shardmat.Matrix.from_triplets(every.row[mine], every.col[mine], every.data[mine], A.shape, first_row=FIRST,
                                      own_rows=LAST - FIRST, context=context)
    np.testing.assert_allclose(m @ X[FIRST:LAST], (A @ X)[FIRST:LAST], atol=1e-12)


def boundary_values(context):
    rows = [3, 50, N - 2]
    changed = A.toarray()
    changed[rows] = 0
    changed[:, rows] = 0
    changed[rows, rows] = 2
    for exchange in ("halo", "allgather"):
        m = shardmat.Matrix.from_rows(A[FIRST:LAST], context=context, updatable=True, exchange=exchange)
        x, b = X[FIRST:LAST, 0].copy(), (A @ X[:, 0])[FIRST:LAST]
        m.zero_rows_columns([3, N - 2] if comm.rank == 0 else [50], 2, x, b)
        assert m.product().info()["exchange"] == ("none" if has_one_owner(context) else exchange)
        np.testing.assert_allclose(m @ X[FIRST:LAST], (changed @ X)[FIRST:LAST], atol=1e-12)
        np.testing.assert_allclose(b, (changed @ X[:, 0])[FIRST:LAST], atol=1e-12)


def eigenvalues(context):
    """M lies on other ranks than K: one is spread by nonzeros, the other by rows."""
    k = shardmat.Matrix.from_file("elasticity:n=4,clamp=0.1", context=context, method="rows")
    m = shardmat.Matrix.from_file("mass:n=4,clamp=0.1", context=context)
    if comm.allreduce(context.info()["feeder"]):
        refused(shardmat.UsageError, "no feeders", lambda: shardmat.eigsh(k, 5, m, which="SM"))
        return
    w, v, info = shardmat.eigsh(k, 5, m, which="SM", return_info=True)
    again, u = shardmat.eigsh(k, 5, m, which="SM", method="shift_invert")
    np.testing.assert_allclose(w, again, rtol=1e-9)
    assert v.shape == (k.own_shape[0], 5) and info["converged"] and info["zero_modes"] == 0
    plain = shardmat.Matrix.from_file("mass:n=4,clamp=0.1", context=context, method="rows", node_block_size=3)
    np.testing.assert_allclose(comm.allreduce(v.T @ (plain @ v)), np.eye(5), atol=1e-9)
    np.testing.assert_allclose(k @ v, (plain @ v) * w, atol=1e-7 * w[-1])
    # Bending comes about two axes, so single vectors of u and v may differ; what they span does not.
    np.testing.assert_allclose(np.linalg.svd(comm.allreduce(v.T @ (plain @ u)))[1], 1, atol=1e-8)
    refused(shardmat.UsageError, "rank", lambda: shardmat.eigsh(k, 5 + (comm.rank == 0), m, which="SM"))


def solving(context):
    m = shardmat.Matrix.from_rows(A[FIRST:LAST], context=context)
    solver = m.solver("gmres", "jacobi", columns=3, rtol=1e-12)
    np.testing.assert_allclose(solver.solve((A @ X)[FIRST:LAST]), X[FIRST:LAST], rtol=1e-8)
    refused(shardmat.NotConvergedError, "most iterations", lambda: m.solver("gmres", max_iterations=1).solve((A @ X)[FIRST:LAST, 0]))
    # A monitor that fails on one rank ends the solve on all.
    poisson = shardmat.Matrix.from_file("poisson7:n=12", context=context)
    failing = comm.rank == 0
    refused(ZeroDivisionError if failing else shardmat.NotConvergedError, "zero" if failing else "told to end",
            lambda: poisson.solve(np.ones(poisson.own_shape[0]), monitor=lambda n, norms: 1 // 0 if failing else None))


def own_preconditioners(context):
    """Each rank gives z of its own rows, wherever these lie; what fails on one rank ends the solve on all."""
    a = sp.csr_matrix(A + A.T)
    b, mine = a @ X, slice(FIRST, LAST)
    inverse = (1 / a.diagonal())[mine]
    for method in (None, "nnz", "rows"):
        with shardmat.Matrix.from_rows(a[mine], context=context, method=method) as m:
            if context.info()["backend"] == "host" and len(set(comm.allgather(context.info()["feeder"]))) > 1:
                refused(ValueError, "feeders", lambda: m.solve(b[mine, 0], solver="cg", M=sp.diags(inverse)))
                continue

            def jacobi(r):
                return (inverse * r.T).T + 0.05 * np.roll(r, 1, axis=0) * (len(r) > 1)

            for columns in (1, 3):
                solver = m.solver("cg", M=jacobi, columns=columns, rtol=1e-10)
                given = b[mine, 0] if columns == 1 else b[mine]
                x = X[mine, 0] if columns == 1 else X[mine]
                np.testing.assert_allclose(solver.solve(given), x, rtol=1e-6)
                assert len(set(comm.allgather(solver.results[0]["iterations"]))) == 1
                np.testing.assert_allclose(solver.precondition(given), jacobi(given), rtol=1e-13)
            x, info = shardmat.gmres(m, b[mine, 0], M=sp.diags(inverse), rtol=1e-10)
            assert info == 0
            np.testing.assert_allclose(x, X[mine, 0], rtol=1e-6)
            norms = []
            x, info = shardmat.gmres(m, b[mine, 0], rtol=1e-10, callback=norms.append)
            assert norms[-1] <= 1e-10 < norms[-2], norms
            seen = []
            x, info = shardmat.cg(m, b[mine, 0], rtol=1e-10, callback=seen.append)
            np.testing.assert_allclose(seen[-1], X[mine, 0], rtol=1e-6)

            last = comm.rank == comm.size - 1
            calls = []

            def fails(r):
                calls.append(1)
                return 1 // 0 if last and len(calls) > 3 else r

            for _ in range(2):
                refused(ZeroDivisionError if last else shardmat.InternalError, "division or modulo by zero",
                        lambda: m.solve(b[mine, 0], solver="cg", M=fails))
            refused(ValueError, "dimension mismatch", lambda: m.solve(b[mine, 0], solver="cg", M=sp.eye(3 if last else LAST - FIRST)))
            refused(Exception, "apply is", lambda: m.solve(b[mine, 0], solver="cg", M=jacobi if last else None))
            np.testing.assert_allclose(m @ X[mine], b[mine], atol=1e-12)


def levels_of_multigrid(context):
    """Called as pyamg; every rank has its rows of P."""
    if context.info()["backend"] != "host":
        return
    a, xyz = elastic_plate(40, 4)
    nodes = len(xyz)
    first, last = nodes * comm.rank // comm.size, nodes * (comm.rank + 1) // comm.size
    own, b = slice(2 * first, 2 * last), np.ones(2 * nodes)
    for method in (None, "nnz"):
        with shardmat.Matrix.from_rows(a[own], context=context, method=method) as m:
            ml = shardmat.multigrid(m, coordinates=xyz[first:last], coarse_size=30, inner="f64")
            residuals = []
            # Slow without acceleration: the nodes lie in any order, and so do ranks' aggregates.
            x = np.concatenate(comm.allgather(ml.solve(b[own], tol=1e-6, maxiter=1000, residuals=residuals)))
            assert np.linalg.norm(b - a @ x) <= 1.1e-6 * np.linalg.norm(b), residuals[-1]
            feeders = any(comm.allgather(context.info()["feeder"]))
            if feeders:
                refused(ValueError, "feeders", lambda: ml.solve(b[own], accel="cg"))
                continue
            x = np.concatenate(comm.allgather(ml.solve(b[own], tol=1e-8, accel="cg", residuals=residuals)))
            assert np.linalg.norm(b - a @ x) <= 1.1e-8 * np.linalg.norm(b) and len(residuals) < 60, residuals
            p = ml.levels[0].P
            assert p.shape[1] == ml.levels[1].unknowns and sum(comm.allgather(p.shape[0])) == a.shape[0]
            if method is None:
                p = sp.vstack(comm.allgather(p)).tocsr()
                modes = rigid_modes(xyz)
                inside = (xyz[:, 0] > 8) & (xyz[:, 0] < 32)
                coarse, *_ = np.linalg.lstsq(p.toarray(), modes, rcond=None)
                close = np.repeat(inside, 2)
                assert abs(p @ coarse - modes)[close].max() < 0.1 * abs(modes).max()
                assert ml.levels[1].nonzeros >= (p.T @ a @ p).nnz * 0.9
            refused(AttributeError, "on one rank only", lambda: ml.levels[0].A)
            assert "Number of Levels" in str(ml)


def files(context):
    m = shardmat.Matrix.from_file("poisson7:n=6", context=context)
    ids = m.row_ids()
    assert sum(comm.allgather(len(ids))) == 216
    whole = shardmat.Matrix.from_file("poisson7:n=6")  # in this process alone
    x = np.random.default_rng(3).random(216)
    np.testing.assert_allclose(m @ x[ids], (whole @ x)[ids], rtol=1e-12)
    scores = shardmat.pagerank("poisson7:n=4", unweighted=True, context=context)
    assert (scores is None) == (comm.rank > 0)


def half_storage(context):
    """A matrix that is symmetric within rounding is stored as the mean of it and its transpose; any other is refused."""
    if os.environ.get("TEST_BACKEND", "host") != "host":
        return
    rng = np.random.default_rng(9)
    a = (A + A.T).tocsr()
    a.data *= 1 + 1e-12 * rng.uniform(-1, 1, a.nnz)
    mean = (a + a.T) / 2
    with shardmat.Matrix.from_rows(a[FIRST:LAST], context=context, storage="symmetric") as m:
        np.testing.assert_allclose(m @ X[FIRST:LAST, 0], (mean @ X[:, 0])[FIRST:LAST], rtol=1e-14, atol=1e-14)
    a = a.tolil()
    i, j = next((i, j) for i, j in zip(*a.nonzero()) if i + 5 < j)
    a[i, j] += 1e-6
    refused(shardmat.InputError, f"entry ({i}, {j}) is",
            lambda: shardmat.Matrix.from_rows(a.tocsr()[FIRST:LAST], context=context, storage="symmetric"))


def errors(context):
    wrong = A[FIRST:LAST].astype(float).copy()
    if comm.rank == 0:
        wrong.data[0] = np.nan
    where = "row 0" if has_one_owner(context) else "rank 0"
    refused(shardmat.InputError, where, lambda: shardmat.Matrix.from_rows(wrong, context=context))
    refused(ValueError, "one rank", lambda: shardmat.Matrix.from_scipy(A, context=context))


def interrupted(context):
    """Ctrl-C on one rank ends the solve of all; there it is a KeyboardInterrupt, and all go on."""
    n = 30_000
    first, last = n * comm.rank // comm.size, n * (comm.rank + 1) // comm.size
    whole = sp.csr_matrix(sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)))  # cg without preconditioner takes n iterations
    b = np.random.default_rng(4).random(n)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # launchers may have it ignored
    with shardmat.Matrix.from_rows(whole[first:last], context=context) as m:
        for victim in range(comm.size):

            def monitor(iterations, norms):
                if comm.rank == victim:
                    os.kill(os.getpid(), signal.SIGINT)

            try:
                m.solve(b[first:last], solver="cg", preconditioner="none", monitor=monitor, max_iterations=10**9, rtol=1e-300, atol=0)
                came = None
            except BaseException as error:
                came = error
            assert type(came) is (KeyboardInterrupt if comm.rank == victim else shardmat.NotConvergedError), repr(came)
            if comm.rank != victim:
                assert "told to end" in str(came) and np.isfinite(came.x).all(), str(came)
            np.testing.assert_allclose(m @ b[first:last], (whole @ b)[first:last], atol=1e-12)
    signal.signal(signal.SIGINT, before)


def main():
    try:
        backend = os.environ.get("TEST_BACKEND", "host")
        # On the host each rank for itself; then the last rank feeds the one before it.
        for owners in (0, comm.size - 1) if backend == "host" else (0,):
            with shardmat.Context(comm, backend=backend, threads=1, owners=owners) as context:
                assert context.info()["ranks"] == comm.size > 1
                if backend == "host":
                    assert context.info()["feeder"] == (owners > 0 and comm.rank == comm.size - 1)
                for step in (own_rows, node_blocks, multigrid, factors, different_options, arrays_of_the_context, triplets, boundary_values, eigenvalues, solving,
                             own_preconditioners, levels_of_multigrid,
                             penalty_rows, half_storage, files, errors, interrupted):
                    step(context)
                    if comm.rank == 0:
                        print(f"{step.__name__}, {owners or 'all'} owners: passed", flush=True)
    except BaseException:
        sys.stderr.write(f"rank {comm.rank}: {traceback.format_exc()}")
        sys.stderr.flush()
        comm.Abort(1)
    if comm.rank == 0:
        print("all ranks are through")


main()
