"""A service for the tests of its Python client."""

import pathlib
import shutil
import sys
import tempfile

import numpy as np

import shardmat

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from service import Service  # noqa: E402
from support import LIMIT, write_binsparse  # noqa: E402
from test_serve_door import LISTEN  # noqa: E402
from test_serve_solve import SolveTest  # noqa: E402

CG = {"solver": "cg", "preconditioner": "jacobi"}


class ServiceClient(SolveTest):
    """A service with two ranks and three matrices, for all tests of a class, and a client of it."""

    OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        wide = cls.matrix[:400]
        write_binsparse(cls.library / "wide.h5", wide)
        cls.wide = wide
        write_binsparse(cls.library / "links.h5", abs(cls.grid))
        folder = pathlib.Path(tempfile.mkdtemp(prefix="shardmat_service_"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.folder = folder
        cls.server = Service(cls.library, folder / "state", "--ranks", 2, *cls.options())
        cls.addClassCleanup(cls.server.close)
        cls.server.wait_until_ready()

    @classmethod
    def options(cls):
        return ()

    @classmethod
    def connected(cls, **options):
        """A new client."""
        return shardmat.connect(cls.server.state, **{"timeout": LIMIT, **options})

    def setUp(self):
        super().setUp()
        self.service = self.connected()
        self.addCleanup(self.service.close)
        for kind, path in (("jobs", "/v1/jobs/"), ("vectors", "/v1/vectors/")):  # of the tests before
            for one in self.service.get_json(f"/v1/{kind}")[kind]:
                self.service.request("DELETE", path + one["id"])
        self.A = self.service.load("bar", "bar.h5", updatable=True)
        self.G = self.service.load("grid", "grid.h5", solvable=True)

    def columns(self, k=None, seed=1, n=None, dtype="float64"):
        n = self.A.shape[1] if n is None else n
        return np.random.default_rng(seed).uniform(-1, 1, n if k is None else (n, k)).astype(dtype)

    def expected(self, x, name="bar", query=""):
        """Bytes of the product of each column, as the server gives them to a plain request."""
        return b"".join(self.server.multiply(name, np.ascontiguousarray(column), query).body for column in np.atleast_2d(x.T))


class HttpClient(ServiceClient):
    """The same over HTTP."""

    @classmethod
    def options(cls):
        return LISTEN

    @classmethod
    def connected(cls, **options):
        return shardmat.connect(f"http://127.0.0.1:{cls.server.port()}", **{"timeout": LIMIT, "token": cls.server.token(), **options})
