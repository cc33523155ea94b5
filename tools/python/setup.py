"""The native module, for pip: see pyproject.toml."""

import glob
import subprocess

from setuptools import setup

try:
    from pybind11.setup_helpers import Pybind11Extension
except ImportError as error:
    raise SystemExit("The module pybind11 is missing, which builds this package. Install it: apt-get install python3-pybind11 "
                     "for Debian's Python with NumPy 1, or pip install 'pybind11>=2.12' in an environment of yours") from error


def pkg_config(*what):
    try:
        return subprocess.run(["pkg-config", *what, "shardmat"], check=True, capture_output=True, text=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit("Shardmat is not found by pkg-config. Install it (cmake --install build --prefix DIR) and set "
                         "PKG_CONFIG_PATH=DIR/lib/pkgconfig") from error


libdir = pkg_config("--variable=libdir")
setup(packages=["shardmat", "shardmat.service"], package_data={"shardmat": ["py.typed", "*.pyi"]},
      ext_modules=[Pybind11Extension("shardmat._shardmat", sorted(glob.glob("native/*.cpp")), cxx_std=17, libraries=["shardmat"],
                                     extra_compile_args=pkg_config("--cflags"), library_dirs=libdir,
                                     runtime_library_dirs=libdir)])
