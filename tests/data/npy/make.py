#!/usr/bin/python3
"""Writes the .npy files of this folder; run in it."""
import numpy as np

x = np.array([1.5, -2, 0.25])
np.save("f8", x)
np.save("f4", x.astype("<f4"))
np.save("column", x.reshape(3, 1))
np.save("column_fortran", np.asfortranarray(x.reshape(3, 1)))
np.save("row", x.reshape(1, 3))
np.save("big_endian", x.astype(">f8"))
np.save("integers", np.arange(3))
np.lib.format.write_array(open("version2.npy", "wb"), x, version=(2, 0))
