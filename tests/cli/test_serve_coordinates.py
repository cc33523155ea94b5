"""Loads that name the coordinates of nodes: multigrid then keeps rigid-body modes, as solve --coordinates does."""

import unittest

import numpy as np

from support import INPUT, OK, PROGRAM, run
from test_multigrid import BEAM, grid_points
from test_serve import ServiceTest
from test_serve_door import LISTEN

QUERY = "method=cg&preconditioner=multigrid&keep=1&wait=60"


class Coordinates(ServiceTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        result = run([PROGRAM, "convert", BEAM, "beam.npz"], cls.library)  # which knows no coordinates
        assert result.code == OK, result
        np.save(cls.library / "xyz.npy", grid_points())
        np.save(cls.library / "short.npy", grid_points()[:-1])
        cls.b = np.random.default_rng(3).standard_normal(3 * len(grid_points()))

    def solved(self, service, name="beam"):
        """Iterations and what multigrid was made of."""
        answer = service.ask("POST", f"/v1/matrices/{name}/solve?{QUERY}", self.b.tobytes())
        self.assertEqual(answer.status, 200, answer)
        job = service.get(f"/v1/jobs/{answer.headers['Shardmat-Job']}").json
        return job["result"][0]["iterations"], job["note"]

    def test_loads_take_them_on_any_number_of_ranks_and_after_a_restart(self):
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks):
                service = self.start("--ranks", str(ranks), *LISTEN, state=f"state{ranks}")
                self.loaded(service, "beam", "beam.npz", solvable=True)
                many, note = self.solved(service)
                self.assertIn("no coordinates are given", note)
                loaded = self.loaded(service, "beam", "beam.npz", solvable=True, coordinates="xyz.npy")  # loads it again
                self.assertEqual(loaded["coordinates"], "xyz.npy")
                few, note = self.solved(service)
                self.assertIn("6 rigid-body modes", note)
                self.assertLess(few, many)
                if ranks < 3:
                    self.assertEqual(service.terminate(), OK)
                    service = self.start("--ranks", str(ranks), *LISTEN, state=f"state{ranks}")
                    service.wait_for("the matrix", lambda: service.get("/v1/matrices/beam").json["state"] == "ready")
                    again, note = self.solved(service)
                    self.assertIn("6 rigid-body modes", note)
                    self.assertEqual(again, few)
                self.assertEqual(service.terminate(), OK)

    def test_refusals(self):
        service = self.start("--ranks", "2")
        for status, fields, says in ((422, {"solvable": True, "coordinates": "short.npy"}, ("short.npy", "1000")),
                                     (422, {"solvable": True, "coordinates": "none.npy"}, ("none.npy",)),
                                     (422, {"solvable": True, "coordinates": "../xyz.npy"}, ("../xyz.npy",)),
                                     (422, {"coordinates": "xyz.npy"}, ("solvable",)),
                                     (400, {"solvable": True, "coordinates": 3}, ("coordinates must be a string",))):
            with self.subTest(fields=fields):
                answer = service.load("beam", "beam.npz", **fields)
                self.assertEqual(answer.status, status, answer)
                for text in says:
                    self.assertIn(text, answer.json["error"])
                self.assertNotIn("rank-", answer.json["error"])
                self.assertNotIn(str(self.library), answer.json["error"])

    def test_the_command(self):
        service = self.start("--ranks", "2")
        self.succeed("client", "load", "beam", "beam.npz", "--solvable", "--coordinates", "xyz.npy", "--state", service.state)
        self.assertIn("6 rigid-body modes", self.solved(service)[1])
        self.fail_with(INPUT, "client", "load", "other", "beam.npz", "--solvable", "--coordinates", "none.npy", "--state", service.state,
                       says="none.npy")


if __name__ == "__main__":
    unittest.main()
