"""Writes the files beside this one with h5py, as MATLAB's save -v7.3 lays them out: 512 bytes of text, then HDF5."""

import h5py
import numpy as np
import scipy.sparse as sp

HEADER = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Tue Nov 10 10:00:00 2026 HDF5 schema 1.00 ."


def add_sparse(file, name, matrix, **options):
    matrix = sp.csc_matrix(matrix)
    group = file.create_group(name)
    group.attrs["MATLAB_class"] = np.bytes_("double")
    group.attrs["MATLAB_sparse"] = np.uint64(matrix.shape[0])
    group["jc"] = matrix.indptr.astype(np.uint64)
    if matrix.nnz:  # MATLAB leaves them out otherwise
        group.create_dataset("ir", data=matrix.indices.astype(np.uint64), **options)
        group.create_dataset("data", data=matrix.data, **options)


def add_dense(file, name, array):
    file[name] = array.T
    file[name].attrs["MATLAB_class"] = np.bytes_("double")


with h5py.File("v73.mat", "w", userblock_size=512, libver=("earliest", "v108")) as file:
    dense = np.array([[1.5, 0, -2, 0], [0, 0, 0, 0], [0.1, 3, 0, 1e300]])
    add_sparse(file, "K", dense, chunks=(3,), compression="gzip")
    add_sparse(file, "empty", np.zeros((4, 2)))
    add_sparse(file, "model/M", np.diag([2.0, 3.0]))
    add_dense(file, "b", np.array([[1.0], [2.0], [3.0]]))
    add_dense(file, "row", np.array([[4.0, 5.0]]))
    add_dense(file, "B", np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
with open("v73.mat", "r+b") as file:
    file.write(HEADER.ljust(116) + b"\0" * 8 + b"\x00\x02IM")
