"""How the tests of the plug-in start programs of PETSc."""

import os
import subprocess
import tempfile

PLUGIN = os.environ["TEST_PLUGIN"]
MPIRUN = [os.environ["TEST_MPIRUN"], os.environ["TEST_RANKS_OPTION"]]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def run(program, ranks, *options, plugin=True):
    """Runs a program, or a list with its arguments, with options of PETSc in an empty folder."""
    command = program if isinstance(program, list) else [program]
    if ranks > 1:
        command = [*MPIRUN, str(ranks), *command]
    if plugin:
        options += ("-dll_append", PLUGIN)
    environment = {**ENVIRONMENT, "PETSC_OPTIONS": " ".join(options)}
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
