"""Runs a script again with a Python that has the packages it needs: the first python3 on the PATH often lacks what the
system's has."""

import importlib
import os
import shutil
import subprocess
import sys

AGAIN = "shardmat_again"  # an option -X of a Python that was chosen here


def require(modules, fail):
    """Imports `modules`, or goes on in another interpreter that can: it does not return then. If none can, calls `fail` with
    a message that names the interpreters asked."""
    missing = []
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    if not missing:
        return
    asked = [sys.executable]
    for python in (shutil.which("python3"), "/usr/bin/python3"):
        if AGAIN in sys._xoptions or python is None or python in asked or not os.path.exists(python):
            continue
        asked.append(python)
        if subprocess.run([python, "-c", f"import {', '.join(modules)}"], capture_output=True).returncode == 0:
            sys.stdout.flush()
            os.execv(python, [python, "-X", AGAIN, *sys.argv])
    fail(f'{", ".join(missing)} {"is" if len(missing) == 1 else "are"} missing in {" and in ".join(asked)}; '
         f'apt-get install {" ".join(f"python3-{name}" for name in missing)}, '
         f'or {sys.executable} -m pip install {" ".join(missing)}')
