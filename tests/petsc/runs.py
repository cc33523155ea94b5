"""How the tests of the plug-in start programs of PETSc."""

import os
import subprocess
import tempfile

PLUGIN = os.environ["TEST_PLUGIN"]
MPIRUN = [os.environ["TEST_MPIRUN"], os.environ["TEST_RANKS_OPTION"]]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
GPU_COUNT = os.path.join(os.path.dirname(__file__), "..", "..", "deploy", "gpu-count.sh")
GPUS = int(subprocess.run([GPU_COUNT], check=True, capture_output=True, text=True).stdout)


def run(program, ranks, *options, plugin=True):
    """Runs a program, or a list with its arguments, with options of PETSc in an empty folder."""
    command = program if isinstance(program, list) else [program]
    if ranks > 1:
        command = [*MPIRUN, str(ranks), *command]
    if plugin:
        options += ("-dll_append", PLUGIN)
        if 0 < GPUS < ranks and "-shardmat_backend" not in options:  # ranks cannot share a GPU
            options += ("-shardmat_backend", "host")
    environment = {**ENVIRONMENT, "PETSC_OPTIONS": " ".join(options)}
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
