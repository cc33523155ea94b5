"""PageRank of a graph."""

from .arrays import csr_arrays, csr_of, indices_of, real
from .context import context_for, native
from .errors import NotConvergedError


def pagerank(graph, *, damping=0.85, restarts=None, seeds=None, tolerance=1e-10, max_iterations=1000, unweighted=False,
             context=None, comm=None):
    """The scores of the vertices of a graph, which sum to 1.

    graph: a matrix of SciPy or NumPy whose entry (i, j) is the weight of an edge from i to j, on one rank; or a matrix file,
    on any number of ranks (collective): rank 0 then returns the scores, the others None. restarts: where the walk begins anew,
    a weight for each vertex, or several columns of them; seeds: vertices, one column for each. Raises NotConvergedError, which
    has the last scores as x. Ctrl-C ends it.
    """
    import os

    import numpy

    context = context_for(context, comm)
    info = context.info()
    if restarts is not None and seeds is not None:
        raise ValueError("give restarts or seeds, not both")
    if isinstance(graph, numpy.ndarray):
        import scipy.sparse

        if graph.ndim != 2:
            raise ValueError(f"the matrix of a graph has two dimensions; this array has {graph.ndim}")
        graph = scipy.sparse.csr_matrix(graph)
    if hasattr(graph, "tocsr"):
        csr = csr_of(graph)
        if csr.shape[0] != csr.shape[1]:
            raise ValueError(f"the matrix of a graph is square; this one is {csr.shape[0]}×{csr.shape[1]}")
        vertices, given = csr.shape[0], csr_arrays(csr)
    elif isinstance(graph, (str, os.PathLike)):
        given = os.fspath(graph)
        vertices = native().file_shape(context._open(), given)[0]
    else:
        raise TypeError(f"a graph is a matrix of SciPy or NumPy, or the name of a matrix file, not {type(graph).__name__}")
    columns, shape = 1, (vertices,)
    if seeds is not None:
        seeds = indices_of(seeds).reshape(-1)
        columns, shape = len(seeds), (vertices, len(seeds))
        if columns == 0:
            raise ValueError("seeds is empty; name a vertex, or leave it out")
        if seeds.min() < 0 or seeds.max() >= vertices:
            wrong = seeds.min() if seeds.min() < 0 else seeds.max()
            raise ValueError(f"there is no vertex {wrong}; seeds are 0 … {vertices - 1}")
        restarts = numpy.zeros(shape)
        restarts[seeds, numpy.arange(columns)] = 1
    elif restarts is not None:
        restarts = numpy.ascontiguousarray(real(restarts, "restarts"), dtype=float)
        if restarts.ndim not in (1, 2) or restarts.shape[0] != vertices:
            raise ValueError(f"restarts of shape {restarts.shape} for {vertices} vertices")
        shape = restarts.shape
        columns = 1 if restarts.ndim == 1 else shape[1]
    scores, result = native().pagerank(context._open(), given, vertices, restarts, damping, tolerance, max_iterations,
                                       unweighted, columns)
    scores = scores.reshape(shape) if info["rank"] == 0 else None
    if not result["converged"]:
        raise NotConvergedError("the scores still change by more than the tolerance; allow more iterations, or a larger "
                                "tolerance", scores, [result])
    return scores
