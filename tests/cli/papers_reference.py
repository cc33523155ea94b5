"""Definitions of the papers, written down again from their texts with NumPy, to compare `bench papers` and `info` with."""

import collections

import numpy as np


def mean_count(columns, low_bits):
    """Tomimori et al., 3.3: count how often all but the low bits agree; at a change emit the count and begin again at 1."""
    emitted, count, last = [], 0, None
    for line in np.asarray(columns) >> low_bits:
        if count and line != last:
            emitted.append(count)
            count = 0
        count, last = count + 1, line
    if count:
        emitted.append(count)
    return float(np.mean(emitted)) if emitted else 0.0


def rows_by_length(matrix):
    return np.argsort(-np.diff(matrix.indptr), kind="stable")


def folded(matrix, width, padded):
    """Pieces of `width` columns, one above the other, read column by column; None is padding."""
    pieces = []
    for row in range(matrix.shape[0]):
        columns = list(matrix.indices[matrix.indptr[row]:matrix.indptr[row + 1]])
        for first in range(0, len(columns), width):
            piece = columns[first:first + width]
            pieces.append(piece + [None] * (width - len(piece)))
    order = [piece[j] for j in range(width) for piece in pieces]
    return [0 if c is None else c for c in order] if padded else [c for c in order if c is not None]


def usual_width(matrix):
    filled = int(np.count_nonzero(np.diff(matrix.indptr)))
    return max(1, -(-matrix.nnz // max(1, filled)))


def advised(stored, sorted_rows, fold):
    largest = max(stored, sorted_rows, fold)
    if stored >= 0.95 * largest:
        return "CRS"
    return "Fold" if fold >= sorted_rows else "sorted CRS"


def runs(matrix):
    """Kawamura et al., Table 2, by Algorithm 2: N, N_z, N_non, N_val, N_col, K, K_v, K_c."""
    s = collections.Counter()
    s["n"], s["stored"] = matrix.shape[0], matrix.nnz
    for row in range(matrix.shape[0]):
        columns = matrix.indices[matrix.indptr[row]:matrix.indptr[row + 1]]
        blocks = np.split(columns, np.flatnonzero(np.diff(columns) != 1) + 1) if len(columns) else []
        inside, bounds = sum(len(b) for b in blocks if len(b) > 1), 2 * sum(len(b) > 1 for b in blocks)
        s["n_val"] += inside
        s["n_col"] += bounds
        s["n_non"] += len(columns) - inside
        s["k"], s["k_v"], s["k_c"] = max(s["k"], len(columns)), max(s["k_v"], inside), max(s["k_c"], bounds)
    return s


def bytes_of(s, value=8):
    """Formulas (1) to (6), with values of 8 bytes as in the text, or of 4; bcrs: the arrays of Fig. 2."""
    n, z, non, val, col, k, kv, kc = (s[key] for key in "n stored n_non n_val n_col k k_v k_c".split())
    single = value * non + 4 * non + 4 * (n + 1)
    blocks = col // 2 + non
    return {"bcrs": value * z + 4 * blocks + 4 * (blocks + 1) + 4 * (n + 1), "csr": (value + 4) * z + 4 * (n + 1), "ell": (value + 4) * n * k, "ell_r": (value + 4) * n * k + 4 * n,
            "rbp_csr": 12 * (n + 1) + 4 * col + value * val + 4 * non + value * non,
            "rbp_ell": value * n * kv + 4 * n * kc + single, "rbp_ell_r": value * n * kv + 4 * (n * kc + n) + single}


def threads_by_formula(matrix):
    """Okada et al.: max(1, min(32, 2^floor(log2(nonzeros / rows))))."""
    mean = matrix.nnz / matrix.shape[0]
    return int(max(1, min(32, 2.0 ** np.floor(np.log2(mean)))))


class Cache:
    """Of 128-byte lines, 4 ways, least recently used goes first."""

    def __init__(self, size):
        self.sets, self.reads, self.hits = [[] for _ in range(size // 128 // 4)], 0, 0

    def load(self, lines):
        """One load of a warp: every line once, the lowest first."""
        for line in sorted(set(lines)):
            of_set = self.sets[line % len(self.sets)]
            self.reads += 1
            if line in of_set:
                self.hits += 1
                of_set.remove(line)
            elif len(of_set) == 4:
                of_set.pop()
            of_set.insert(0, line)


def run_warps(threads, cache):
    """threads[t] lists the steps of thread t, each a list of lines; warps of 32 take turns, step by step. All fit at once."""
    for step in range(max(map(len, threads), default=0)):
        for first in range(0, len(threads), 32):
            active = [t[step] for t in threads[first:first + 32] if step < len(t)]
            for load in range(max(map(len, active), default=0)):
                cache.load([lines[load] for lines in active if load < len(lines)])


def l1_hit_rates(matrix, value, width, size=256 << 10):
    """Hit rates of CRS with a thread a row, and of Fold with a thread a piece and then one a row; at most 2048 threads."""
    pointers = matrix.indptr

    def line(array, index, entry):
        return (array << 44) + int(index) * entry // 128
    crs = Cache(size)
    run_warps([[[line(1, i, 4), line(1, i + 1, 4)]]
               + [[line(2, k, 4), line(3, k, value), line(4, matrix.indices[k], value)] for k in range(pointers[i], pointers[i + 1])]
               for i in range(matrix.shape[0])], crs)
    pieces = [(k, min(k + width, pointers[i + 1])) for i in range(matrix.shape[0]) for k in range(pointers[i], pointers[i + 1], width)]
    first = Cache(size)
    run_warps([[[line(2, j * len(pieces) + p, 4), line(3, j * len(pieces) + p, value)]
                + ([line(4, matrix.indices[begin + j], value)] if begin + j < end else []) for j in range(width)]
               for p, (begin, end) in enumerate(pieces)], first)
    second, at, threads = Cache(size), 0, []
    for i in range(matrix.shape[0]):
        count = -(-(pointers[i + 1] - pointers[i]) // width)
        threads.append([[line(1, i, 4), line(1, i + 1, 4)]] + [[line(5, p, value)] for p in range(at, at + count)])
        at += count
    run_warps(threads, second)
    return crs.hits / crs.reads, (first.hits + second.hits) / (first.reads + second.reads)
