"""The service with ranks on several hosts, as far as ranks can tell: each host has its name, and its ranks use neither the
memory nor the socket of the front end's host."""

import os
import pathlib
import signal
import unittest

import numpy as np

import test_serve
import test_serve_eigen
import test_serve_merge
import test_serve_shared
import test_serve_solve
import test_serve_values
import test_serve_vectors
from service import Service
from support import LIMIT, OK, PROGRAM, RANK_LOST, run
from test_serve import NAMES, ServiceTest


class HostsTest(ServiceTest):
    @classmethod
    def setUpClass(cls):
        if not os.environ.get("TEST_PRETENDED_HOSTS"):
            raise unittest.SkipTest("nothing can be loaded before programs with sanitizers")
        super().setUpClass()
        result = run([PROGRAM, "partition", "elasticity_bar.mtx.gz", "sorted.h5", "--parts", 3, "--sort", "global"], cls.library)
        assert result.code == OK, result

    @staticmethod
    def launcher(ranks, of_each, *also):
        """Starts ranks on hosts of so many each; `also`: further variables of the ranks."""
        variables = [f"LD_PRELOAD={os.environ['TEST_PRETENDED_HOSTS']}", f"PRETENDED_HOSTS_OF={of_each}", *also]
        return "--launcher", " ".join(["mpirun", "-n", str(ranks), "env", *variables])

    def over_hosts(self, ranks=4, of_each=2, **more):
        service = self.start(*self.launcher(ranks, of_each), state=f"hosts-{ranks}-{of_each}", **more)
        hosts = [rank["host"] for rank in service.get("/v1/ranks").json["ranks"]]
        self.assertEqual(hosts, [f"host{rank // of_each}" for rank in range(ranks)])
        return service


class Products(HostsTest):
    def answers(self, service):
        """Bytes of many kinds of products."""
        found = {}
        for source in ("bar.h5", "sorted.h5", "elasticity_bar.mtx.gz"):
            for type in ("f64", "f32"):
                self.loaded(service, "m", source, type=type)
                x = self.vector(5, type, columns=4)
                key = (source, type)
                found[key, "one"] = service.multiply("m", x[0]).body
                found[key, "four"] = service.multiply("m", x, "?k=4").body
                found[key, "beta"] = service.multiply("m", np.concatenate([x[0], x[1]]), "?alpha=-0.5&beta=3").body
                y = np.frombuffer(found[key, "one"], NAMES[type])
                rounding = np.finfo(NAMES[type]).eps * (abs(self.matrix) @ np.abs(x[0]).astype(np.float64))
                self.assertLessEqual(np.max(np.abs(y - self.matrix @ x[0].astype(np.float64)) / rounding), 100)
                self.assertEqual(service.ask("POST", "/v1/matrices/m/unload").status, 200)
        return found

    def test_bits_are_those_of_one_host(self):
        for ranks, of_each in ((2, 1), (4, 2), (4, 3)):
            with self.subTest(ranks=ranks, of_each=of_each):
                one_host = self.start("--ranks", ranks, state=f"one-{ranks}-{of_each}")
                expected = self.answers(one_host)
                self.assertEqual(one_host.terminate(), OK, one_host.report())
                service = self.over_hosts(ranks, of_each)
                self.assertEqual(self.answers(service), expected)
                self.assertEqual(service.terminate(), OK, service.report())


class Losses(HostsTest):
    def test_a_killed_rank_of_another_host_is_started_again(self):
        service = self.over_hosts(4, 2)
        self.loaded(service, "bar", "sorted.h5")
        x = self.vector(8)[0]
        expected = service.multiply("bar", x).body
        for rank in (3, 0):
            restarts = service.get("/v1/ranks").json["restarts"]
            os.kill(self.process_of(service, rank), signal.SIGKILL)
            service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == restarts + 1)
            service.wait_until_ready()
            self.assertEqual(service.get("/v1/ranks").json["last_loss"]["rank"], rank)
            self.assertEqual(service.multiply("bar", x).body, expected)
        self.assertEqual(service.terminate(), OK, service.report())
        self.assertEqual(service.workers(), [])

    def process_of(self, service, rank):
        for pid in service.workers():
            if f"OMPI_COMM_WORLD_RANK={rank}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                return pid
        self.fail(f"no process of rank {rank}")

    def test_nothing_listens_once_the_ranks_are_there(self):
        service = self.over_hosts(2, 1)
        rows = [line.split() for name in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/{service.process.pid}/net/{name}").read_text().splitlines()[1:]]
        listening = {row[9] for row in rows if row[3] == "0A"}
        own = {link[8:-1] for link in map(os.readlink, pathlib.Path(f"/proc/{service.process.pid}/fd").iterdir()) if link.startswith("socket:[")}
        self.assertEqual(own & listening, set())

    def test_a_host_that_cannot_reach_the_front_end_is_told(self):
        launcher = self.launcher(2, 1, "CUT_OFF_RANK=1")
        service = Service(self.library, self.path("state"), "--restarts", 0, *launcher)
        self.addCleanup(service.close)
        self.assertEqual(service.process.wait(LIMIT), RANK_LOST, service.report())
        self.assertRegex(service.report(), r"listens for ranks of other hosts at port \d+ of .*, and none of these can be reached")


# What is tested with ranks of one host, with each rank on a host of its own.
class AsOnOneHost(HostsTest):
    def start(self, *options, **more):
        options = list(options)
        if "--ranks" in options:
            at = options.index("--ranks")
            ranks = options[at + 1]
            options[at:at + 2] = self.launcher(ranks, 1) if ranks > 1 else ["--ranks", 1]
        return super().start(*options, **more)


class ProductsOfRequests(AsOnOneHost, test_serve.Products):
    pass


class ValuesOfRequests(AsOnOneHost, test_serve_values.Values):
    pass


class VectorsThatStay(AsOnOneHost, test_serve_vectors.Vectors):
    pass


class VectorsBehindOthers(AsOnOneHost, test_serve_vectors.Beta):
    pass


class Answers(AsOnOneHost, test_serve_solve.Answers):
    pass


class Eigenvalues(AsOnOneHost, test_serve_eigen.Answers):
    pass


class MergedSolves(AsOnOneHost, test_serve_merge.Answers):
    pass


class SharedMemory(AsOnOneHost, test_serve_shared.Products):
    pass


class SolvesInSharedMemory(AsOnOneHost, test_serve_shared.Solves):
    pass


if __name__ == "__main__":
    unittest.main()
