"""Writes the files beside this one with h5py, as MATLAB's save -v7.3 lays them out: 512 bytes of text, then HDF5."""

import h5py
import numpy as np
import scipy.io
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

# Versions 5 to 7, as scipy.io.savemat writes them; big.mat has its bytes in the other order.
variables = {"K": sp.csc_matrix(dense), "b": np.array([[1.0], [2.0], [3.0]]), "B": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
             "empty": sp.csc_matrix((4, 2)), "n": np.array([[4, 5]], np.int8), "text": "words"}
scipy.io.savemat("v6.mat", variables)
scipy.io.savemat("v7.mat", variables, do_compression=True)


def swapped(data):
    """The file v6.mat with one variable, K, and every number reversed."""
    out = bytearray(data[:124] + b"\x01\x00MI")
    at = 128
    while at < len(data):
        kind, size = np.frombuffer(data[at:at + 8], "<u4")
        if kind >> 16:  # a small element
            size, width, body = kind >> 16, {1: 1, 2: 1, 5: 4, 6: 4}[kind & 0xFFFF], at + 4
            out += np.array([kind], ">u4").tobytes()
            out += np.frombuffer(data[body:body + 4], f"<u{width}").astype(f">u{width}").tobytes()
            at += 8
            continue
        out += np.array([kind, size], ">u4").tobytes()
        at += 8
        if kind == 14:
            continue
        width = {1: 1, 2: 1, 5: 4, 6: 4, 9: 8}[kind]
        padded = (size + 7) // 8 * 8
        out += np.frombuffer(data[at:at + padded], f"<u{width}").astype(f">u{width}").tobytes()
        at += padded
    return bytes(out)


scipy.io.savemat("one.mat", {"K": sp.csc_matrix(dense)})  # kept only as big.mat
with open("one.mat", "rb") as file:
    content = file.read()
with open("big.mat", "wb") as file:
    file.write(swapped(content))
