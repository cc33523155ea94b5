#!/usr/bin/python3
"""Writes the .npz files of this folder; run in it. All hold the same 5 x 4 matrix unless their name says otherwise."""
import numpy as np
import scipy.sparse as sp

a = np.array([[1.5, 0, 0, -2], [0, 0, 0, 0], [0, 3, 0, 0], [4, 5, 6, 7], [0, 0, 1e-3, 0]])
for name in ("csr", "csc", "coo"):
    sp.save_npz(name, sp.csr_matrix(a).asformat(name))
for name in ("csr", "csc", "coo"):
    sp.save_npz(name + "_stored", sp.csr_matrix(a).asformat(name), compressed=False)
sp.save_npz("csr_f32", sp.csr_matrix(a).astype(np.float32))
sp.save_npz("csr_int", sp.csr_matrix(a).astype(np.int16))
sp.save_npz("csr_bool", sp.csr_matrix(a).astype(bool))
sp.save_npz("csr_complex", sp.csr_matrix(a).astype(complex))
sp.save_npz("bsr", sp.bsr_matrix(a, blocksize=(1, 2)))
sp.save_npz("dia", sp.dia_matrix((np.array([[1.5, -2, 3, 4], [0.5, 6, 7, 8], [9, 10, 11, -12]]), [-2, 0, 1]), shape=(5, 4)))
twice = sp.coo_matrix((np.array([1.0, 2.0, 4.0]), (np.array([2, 0, 2]), np.array([1, 3, 1]))), shape=(3, 4))
sp.save_npz("coo_duplicates", twice)
m = sp.csr_matrix(a)
m.indices[3] = 9
sp.save_npz("csr_outside", m)
m = sp.csr_matrix(a)
m.data[2] = np.nan
sp.save_npz("csr_nan", m)
sp.save_npz("no_rows", sp.csr_matrix((0, 3)))
wide = sp.csr_matrix(a)
wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
np.savez_compressed("csr_int64.npz", format=b"csr", shape=wide.shape, data=wide.data, indices=wide.indices,
                    indptr=wide.indptr)
np.savez_compressed("tall.npz", format=b"csr", shape=[100_000_000, 4], data=np.zeros(0), indices=np.zeros(0, np.int32),
                    indptr=np.zeros(6, np.int32))

graphs = {"graph_ptr": np.array([0, 2, 2, 3], np.int32), "indptr": np.array([0, 1, 2, 3]),
          "indices": np.array([1, 0, 0], np.uint16)}
np.savez_compressed("graphs", **graphs, labels=np.zeros(3, np.uint8))
np.savez("graphs_stored", **graphs, data=np.array([0.5, -2, 3], np.float32))
np.savez_compressed("graphs_data", **graphs, data=np.array([0.5, -2, 3], np.float32))
for name in ("values", "edge_weight"):
    np.savez_compressed(f"graphs_{name}", **graphs, **{name: np.array([0.5, -2, 3])})
np.savez_compressed("graphs_two_values", **graphs, data=np.ones(3), values=np.ones(3))
np.savez_compressed("graphs_edge_attr", **graphs, edge_attr=np.ones((3, 2)))
np.savez_compressed("graphs_values_short", **graphs, values=np.ones(2))
np.savez_compressed("graphs_values_nan", **graphs, values=np.array([1, np.nan, 3]))
np.savez_compressed("graphs_outside", **{**graphs, "indices": np.array([1, 0, 1])})
np.savez_compressed("graphs_falling", **{**graphs, "graph_ptr": np.array([0, 2, 1, 3])})
np.savez_compressed("graphs_short", **{**graphs, "indptr": np.array([0, 1, 3])})
