"""Opens a shard file with h5py and SciPy alone and compares it with the matrix it must hold.

SHARDMAT_PROGRAM names the shardmat program. Runs under pytest and as a plain script.
"""

import json
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import scipy.sparse as sp


def program():
    return os.environ.get("SHARDMAT_PROGRAM", "shardmat")


def read_with_h5py(path):
    with h5py.File(path, "r") as f:
        descriptor = json.loads(f.attrs["binsparse"])["binsparse"]
        arrays = {name: f[name][()] for name in ("pointers_to_1", "indices_1", "values")}
    return descriptor, sp.csr_matrix(
        (arrays["values"], arrays["indices_1"], arrays["pointers_to_1"]), shape=tuple(descriptor["shape"])
    ), arrays


def write_with_h5py(path, matrix, index_type=np.int64, value_type=np.float64):
    """A Binsparse file as another program writes it: variable-length descriptor, no /shardmat."""
    matrix = sp.csr_matrix(matrix)
    matrix.sort_indices()
    descriptor = {
        "version": "0.1",
        "format": "CSR",
        "shape": list(matrix.shape),
        "number_of_stored_values": int(matrix.nnz),
        "data_types": {
            "pointers_to_1": np.dtype(index_type).name,
            "indices_1": np.dtype(index_type).name,
            "values": np.dtype(value_type).name,
        },
    }
    with h5py.File(path, "w") as f:
        f.attrs["binsparse"] = json.dumps({"binsparse": descriptor})
        f["pointers_to_1"] = matrix.indptr.astype(index_type)
        f["indices_1"] = matrix.indices.astype(index_type)
        f.create_dataset("values", data=matrix.data.astype(value_type), chunks=True, compression="gzip")


def in_temporary_directory(test):
    def run():
        with tempfile.TemporaryDirectory() as directory:
            test(directory)

    run.__name__ = test.__name__
    return run


@in_temporary_directory
def test_h5py_and_scipy_read_what_is_written(directory):
    path = os.path.join(directory, "out.h5")
    subprocess.run([program(), "generate", "poisson", "--n", "6", path], check=True)
    descriptor, matrix, arrays = read_with_h5py(path)
    assert descriptor["version"] == "0.1" and descriptor["format"] == "CSR"
    assert matrix.shape == (216, 216)
    assert descriptor["number_of_stored_values"] == matrix.nnz == (3 * 6 - 2) ** 3
    for name, array in arrays.items():
        assert descriptor["data_types"][name] == array.dtype.name
    assert arrays["pointers_to_1"].dtype == np.int64
    matrix.check_format(full_check=True)
    assert matrix.has_canonical_format
    assert abs(matrix - matrix.T).max() <= 1e-12 * abs(matrix).max()


@in_temporary_directory
def test_global_sort_is_undone_by_the_permutation(directory):
    plain, ordered = os.path.join(directory, "plain.h5"), os.path.join(directory, "sorted.h5")
    subprocess.run([program(), "generate", "poisson", "--n", "6", plain], check=True)
    subprocess.run([program(), "partition", plain, ordered, "--parts", "2,3", "--sort", "global"], check=True)
    original = read_with_h5py(plain)[1]
    matrix = read_with_h5py(ordered)[1]
    with h5py.File(ordered, "r") as f:
        order = f["shardmat/permutation"][()]
        assert list(f["shardmat/partitions"]) == ["nnz-2", "nnz-3"]
        assert f["shardmat/partitions/nnz-3/row_starts"].shape == (4,)
    assert (matrix != original[order][:, order]).nnz == 0
    assert np.all(np.diff(np.diff(matrix.indptr)) <= 0)


@in_temporary_directory
def test_files_of_h5py_are_read(directory):
    foreign, ours = os.path.join(directory, "foreign.h5"), os.path.join(directory, "ours.h5")
    matrix = sp.random(50, 70, density=0.1, format="csr", random_state=1)
    for index_type, value_type in ((np.int64, np.float64), (np.uint64, np.float32), (np.int32, np.float64)):
        write_with_h5py(foreign, matrix, index_type, value_type)
        subprocess.run([program(), "partition", foreign, ours, "--parts", "3"], check=True)
        found = read_with_h5py(ours)[1]
        assert (found != matrix.astype(value_type).astype(np.float64)).nnz == 0


if __name__ == "__main__":
    tests = [test for name, test in sorted(globals().items()) if name.startswith("test_")]
    for test in tests:
        test()
        print(f"{test.__name__}: passed")
    print(f"{len(tests)} passed, 0 failed")
    sys.exit(0)
