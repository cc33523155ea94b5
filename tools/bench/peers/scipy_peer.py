#!/usr/bin/env python3
"""SciPy as a peer of `shardmat bench … --peers`: A @ X with scipy.sparse.csr_array, in one thread.

Started by the bench as scipy_peer.py SOCKET cpu|wall; tools/bench/peers/peer.h describes the dialogue.
"""

import mmap
import os
import socket
import sys
import time

import interpreter

FIELDS = ("rows", "cols", "nnz", "columns", "column_major", "value_bytes", "row_ptr", "col_idx", "values", "x", "y", "bytes")


class Peer:
    """The operands of one product, and the product."""

    def __init__(self, block):
        import numpy as np
        import scipy.sparse
        sizes = dict(zip(FIELDS, np.frombuffer(block, np.int64, len(FIELDS)).tolist()))
        value = np.float64 if sizes["value_bytes"] == 8 else np.float32
        order = "F" if sizes["column_major"] else "C"

        def array(place, count, dtype):
            return np.frombuffer(block, dtype, count, sizes[place])

        def dense(place, rows):
            shape = (rows, sizes["columns"]) if sizes["columns"] > 1 else (rows,)
            return array(place, rows * sizes["columns"], value).reshape(shape, order=order)

        parts = (array("values", sizes["nnz"], value), array("col_idx", sizes["nnz"], np.int32),
                 array("row_ptr", sizes["rows"] + 1, np.int32))
        self.matrix = scipy.sparse.csr_array(tuple(part.copy() for part in parts), shape=(sizes["rows"], sizes["cols"]))
        self.x = dense("x", sizes["cols"]).copy(order=order)
        self.shared_y = dense("y", sizes["rows"])

    def multiply(self):
        self.y = self.matrix @ self.x

    def store_result(self):
        self.shared_y[...] = self.y


class Program:
    def __init__(self, clock):
        self.clock = time.thread_time if clock == "cpu" else time.monotonic
        self.block = self.peer = None

    def answer(self, line):
        verb, _, argument = line.partition(" ")
        return getattr(self, "do_" + verb)(argument)

    def do_list(self, _):
        return "ok 1\nscipy\tSciPy\tfull\tserial"

    def do_open(self, path):
        self.peer = None
        with open(path, "r+b") as file:
            self.block = mmap.mmap(file.fileno(), 0)
        return "ok"

    def do_prepare(self, _):
        self.peer = Peer(self.block)
        return "ok csr_array"

    def do_run(self, products):
        self.peer.multiply()
        start = self.clock()
        for _ in range(int(products)):
            self.peer.multiply()
        return f"ok {self.clock() - start:.9e}"

    def do_result(self, _):
        self.peer.store_result()
        return "ok"

    def do_drop(self, _):
        self.peer = None
        return "ok"


def main():
    _, name, clock = sys.argv
    interpreter.require(["numpy", "scipy"], sys.exit)
    program = Program(clock)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + name)
        lines = connection.makefile("rw")
        print(f"hello {os.getpid()}", file=lines, flush=True)
        for line in lines:
            try:
                answer = program.answer(line.rstrip("\n"))
            except Exception as error:  # the bench says which peer failed, and why
                answer = f"no {type(error).__name__}: {error}".replace("\n", " ")
            print(answer, file=lines, flush=True)


if __name__ == "__main__":
    main()
