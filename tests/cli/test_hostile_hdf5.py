"""HDF5 files that are made to do harm: each is refused on every rank with the file's name, quickly and in little memory."""

import json
import os
import pathlib
import resource
import shutil
import unittest
import zlib

import h5py
import numpy as np
import scipy.sparse as sp

from support import (INPUT, OK, PROGRAM, RESOURCES, USAGE, CliTest, read_vector, with_growing_deadline, write_binsparse,
                     write_vector)

HUGE = 2**29


def little_memory():
    """No allocation of gigabytes passes unnoticed."""
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


class HostileHdf5(CliTest):
    def setUp(self):
        super().setUp()
        matrix = sp.eye(10, format="csr")
        write_binsparse(self.path("a.h5"), matrix)
        self.write("secret", np.arange(100.0).tobytes())
        os.mkfifo(self.path("fifo"))

    def tearDown(self):
        self.path("fifo").unlink()

    def refuse(self, *arguments, says=(), code=INPUT):
        self.fail_with(code, *arguments, says=says, preexec_fn=little_memory, limit=30)

    def vector(self, make, name="x.h5"):
        with h5py.File(self.path(name), "w") as file:
            make(file)
        return name

    def test_data_of_other_files(self):
        raw = [(name, lambda file, name=name: file.create_dataset("x", (10,), "f8", external=[(name, 0, 80)]))
               for name in ("secret", str(self.path("secret")), "/etc/passwd", "fifo")]
        layout = h5py.VirtualLayout((10,), "f8")
        layout[:] = h5py.VirtualSource("other.h5", "x", (10,))
        write_vector(self.path("other.h5"), np.ones(10))
        cases = raw + [("other.h5", lambda file: file.__setitem__("x", h5py.ExternalLink("other.h5", "/x"))),
                       ("virtual", lambda file: file.create_virtual_dataset("x", layout))]
        for text, make in cases:
            self.vector(make)
            self.refuse("multiply", "a.h5", "--x", "x.h5", says=["x.h5", "/x", text])
        self.fail_on_every_rank(INPUT, "multiply", "a.h5", "--x", "x.h5", says="virtual")
        self.vector(raw[0][1])
        self.fail_with(USAGE, "multiply", "a.h5", "--x", "x.h5", says="follow", env={"SHARDMAT_HDF5_LINKS": "yes"})
        self.succeed("multiply", "a.h5", "--x", "x.h5", "--output", "y.npy", ranks=2, env={"SHARDMAT_HDF5_LINKS": "follow"})
        np.testing.assert_array_equal(read_vector(self.path("y.npy")), np.arange(10.0))

    def test_links_are_refused_in_every_input(self):
        link = lambda *names: self.vector(  # noqa: E731
            lambda file: [file.__setitem__(name, h5py.ExternalLink("a.h5", "/values")) for name in names], "linked.h5")
        link("points", "tetrahedra")
        self.refuse("info", "elasticity:mesh=linked.h5", says=["linked.h5", "/points", "a.h5"])
        shutil.copy(self.path("a.h5"), self.path("matrix.h5"))
        with h5py.File(self.path("matrix.h5"), "a") as file:
            del file["values"]
            file["values"] = h5py.ExternalLink("a.h5", "/values")
        for command in ("multiply", "info", "verify-file"):
            self.refuse(command, "matrix.h5", says=["matrix.h5", "/values", "a.h5"])
        self.succeed("batch", "molecules:count=3", "--rhs", 2, "--save", "batch.h5")
        with h5py.File(self.path("batch.h5"), "a") as file:
            del file["values"]
            file["values"] = h5py.ExternalLink("a.h5", "/values")
        self.refuse("batch", "batch.h5", "--rhs", 2, says=["batch.h5", "/values", "a.h5"])

    def test_short_chunks(self):
        def chunk(data, mask, **options):
            def make(file):
                set = file.create_dataset("x", (10,), "f8", chunks=(10,), **options)
                set.id.write_direct_chunk((0,), data, mask)
            return self.vector(make)
        whole = np.arange(10.0).tobytes()
        for data, mask, says in ((whole, 1, "mask 1"), (b"short", 1, "mask 1"), (zlib.compress(whole[:-8]), 0, "inflate"),
                                 (zlib.compress(whole + whole), 0, "inflate"), (b"no stream", 0, "inflate")):
            chunk(data, mask, compression="gzip")
            self.refuse("multiply", "a.h5", "--x", "x.h5", "--verify", says=["x.h5", "/x", says])
        chunk(zlib.compress(whole), 0, compression="gzip")
        self.succeed("multiply", "a.h5", "--x", "x.h5", "--verify", "--output", "y.npy")
        np.testing.assert_array_equal(read_vector(self.path("y.npy")), np.arange(10.0))

    def test_compression_that_needs_other_code(self):
        self.vector(lambda file: file.create_dataset("x", data=np.arange(10.0), compression="lzf"))
        self.refuse("multiply", "a.h5", "--x", "x.h5", says=["/x", "32000", "h5repack"])
        for variable in ("HDF5_DRIVER", "HDF5_VOL_CONNECTOR"):
            result = self.call("multiply", "a.h5", env={variable: "none"})
            self.assertEqual((result.code, variable in result.err), (USAGE, True), result)

    def test_sizes_that_are_not_there(self):
        """Declared in a few bytes: unwritten chunks, unwritten arrays, arrays in holes of the file."""
        for options in ({}, {"chunks": (1 << 20,)}):
            self.succeed("generate", "poisson", "--n", 3, "big.h5")
            with h5py.File(self.path("big.h5"), "a") as file:
                del file["shardmat/block_rows"]
                file["shardmat"].create_dataset("block_rows", (HUGE,), "i8", **options)
            for command in ("multiply", "info", "verify-file"):
                self.refuse(command, "big.h5", says=["big.h5", "block_rows"])
            self.vector(lambda file: (file.create_dataset("points", (2**28, 3), "f8", chunks=None if not options else (1000, 3)),
                                      file.create_dataset("tetrahedra", (2**28, 4), "i4")), "mesh.h5")
            self.refuse("info", "elasticity:mesh=mesh.h5", says="mesh.h5")
            for rows in (HUGE, 2**59):
                descriptor = {"version": "0.1", "format": "CSR", "shape": [rows, 10], "number_of_stored_values": 0,
                              "data_types": {"pointers_to_1": "int64", "indices_1": "int64", "values": "float64"}}

                def plain(file, rows=rows, descriptor=descriptor):
                    file.attrs["binsparse"] = json.dumps({"binsparse": descriptor})
                    file.create_dataset("pointers_to_1", (rows + 1,), "i8", **options)
                    file.create_dataset("indices_1", (0,), "i8")
                    file.create_dataset("values", (0,), "f8")
                self.vector(plain, "plain.h5")
                for command in ("multiply", "info", "verify-file"):
                    self.refuse(command, "plain.h5", says="plain.h5")

    def test_tables_that_inflate(self):
        """2 GB of zeros in a few hundred kB."""
        self.succeed("generate", "poisson", "--n", 3, "big.h5")
        zeros = zlib.compress(bytes(8 << 20))
        with h5py.File(self.path("big.h5"), "a") as file:
            del file["shardmat/block_rows"]
            set = file["shardmat"].create_dataset("block_rows", (256 << 20,), "i8", chunks=(1 << 20,), compression="gzip")
            for i in range(256):
                set.id.write_direct_chunk((i << 20,), zeros)
        for command in ("multiply", "info", "verify-file"):
            self.refuse(command, "big.h5", says=["big.h5", "block_rows", "larger than"])

    def test_matrices_too_wide_for_memory(self):
        """2^60 columns are legal; vectors of so many are not to be had."""
        for cols in (2**45, 2**60):
            matrix = json.loads(h5py.File(self.path("a.h5")).attrs["binsparse"])
            matrix["binsparse"]["shape"][1] = cols
            shutil.copy(self.path("a.h5"), self.path("wide.h5"))
            with h5py.File(self.path("wide.h5"), "a") as file:
                file.attrs["binsparse"] = json.dumps(matrix)
            result = self.call("multiply", "wide.h5", preexec_fn=little_memory)
            self.assertIn(result.code, (OK, RESOURCES), result)
            result = self.call("info", "wide.h5", preexec_fn=little_memory)
            self.assertIn(result.code, (OK, RESOURCES), result)

    def test_matrices_with_a_fill_value(self):
        """Entries that are not stored are not 0 there."""
        descriptor = json.loads(h5py.File(self.path("a.h5")).attrs["binsparse"])
        descriptor["binsparse"]["fill"] = True
        with h5py.File(self.path("a.h5"), "a") as file:
            file.attrs["binsparse"] = json.dumps(descriptor)
            file["fill_value"] = np.ones(1)
        self.refuse("multiply", "a.h5", says=["a.h5", "fill"])

    def test_files_with_more_than_a_matrix_are_kept(self):
        self.succeed("generate", "poisson", "--n", 3, "mine.h5")
        with h5py.File(self.path("mine.h5"), "a") as file:
            file["precious"] = np.arange(5)
        before = self.path("mine.h5").read_bytes()
        for command in (["partition", "a.h5"], ["generate", "poisson", "--n", 4]):
            self.fail_with(USAGE, *command, "mine.h5", says=["mine.h5", "--force"])
        self.assertEqual(self.path("mine.h5").read_bytes(), before)

    def test_pipes_without_a_reader(self):
        os.rename(self.path("fifo"), self.path("y.npy"))
        self.fail_with(RESOURCES, "multiply", "a.h5", "--output", "y.npy", says="no program reads this pipe")
        os.rename(self.path("y.npy"), self.path("fifo"))
        for name in ("y.h5:/y/", "y.h5:/a//b", "y.h5:/../y", "y.h5:/.", "y.h5:/" + 600 * "a/" + "y"):
            self.fail_with(USAGE, "multiply", "a.h5", "--output", name, says="no name of a dataset")

    def test_ranks_wait_for_the_helper_program(self):
        """It may take longer than ranks wait for each other otherwise."""
        helper = pathlib.Path(PROGRAM).parents[1] / "partition" / "hdf5" / "shardmat-h5check"

        def attempt(timeout):
            self.write("slow", f'#!/bin/sh\nsleep {3 * timeout}\nexec {helper} "$@"\n')
            self.path("slow").chmod(0o700)
            self.succeed("multiply", "a.h5", "--timeout", timeout, ranks=2, env={"SHARDMAT_H5CHECK": str(self.path("slow"))})

        with_growing_deadline(attempt, (1, 6, 60))

    def test_what_is_no_file(self):
        for command in (("multiply", "a.h5", "--x", "fifo.h5"), ("multiply", "fifo.h5"), ("info", "fifo.h5"),
                        ("verify-file", "fifo.h5"), ("info", "elasticity:mesh=fifo.h5"), ("batch", "fifo.h5", "--rhs", 1)):
            os.rename(self.path("fifo"), self.path("fifo.h5"))
            self.refuse(*command, says="fifo.h5")
            os.rename(self.path("fifo.h5"), self.path("fifo"))


if __name__ == "__main__":
    unittest.main()
