"""Solves that wait for the same matrix with the same settings are merged: what each of them gets, and which are not."""

import contextlib
import os
import signal
import threading
import unittest

import numpy as np

from support import OK
from test_serve import NAMES
from test_serve_solve import SolveTest

QUERY = "method=cg&preconditioner=jacobi&alone=0"
MERGED_COLUMNS = 8


class MergeTest(SolveTest):
    @contextlib.contextmanager
    def held(self, service, query, name="grid"):
        """The ranks stand still while a job with these settings is the first one, so that others wait for its end."""
        workers = service.workers()
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        try:
            first = self.solve(service, np.ones(self.grid.shape[0], self.types[name]).tobytes(), query, name, 202).json["id"]
            yield
        finally:
            for pid in workers:
                os.kill(pid, signal.SIGCONT)
        self.assertEqual(self.ended(service, first)["merged"], 1)
        self.assertEqual(service.ask("DELETE", f"/v1/jobs/{first}").status, 204)

    def solvable(self, service, name="grid", source="grid.h5", **more):
        self.types[name] = NAMES[more.get("type", "f64")]
        return super().solvable(service, name, source, **more)

    def setUp(self):
        super().setUp()
        self.types = {}

    def at_once(self, service, bodies, query=QUERY, name="grid", first=None):
        """The ids of jobs that waited together; `query`: of all, or of each; `first`: of the one that they waited for."""
        queries = [query] * len(bodies) if isinstance(query, str) else query
        with self.held(service, first or queries[0], name):
            return [self.solve(service, body, one, name, 202).json["id"] for body, one in zip(bodies, queries, strict=True)]

    def x_of(self, service, id):
        answer = service.get(f"/v1/jobs/{id}/x")
        self.assertEqual(answer.status, 200, answer)
        return answer.body

    def merged(self, service):
        return sorted(job["merged"] for job in service.get("/v1/jobs").json["jobs"])


class Answers(MergeTest):
    def test_a_column_has_the_bits_of_a_wide_solve_whatever_the_others(self):
        for ranks in (1, 2, 3):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            for type in ("f64", "f32"):
                self.solvable(service, type=type)
                b = self.b(ranks, type, 5)
                b[1] *= 1e-3  # another right-hand side, another number of iterations
                b[2] = 0
                for query in ("method=cg&preconditioner=jacobi", "method=cg&preconditioner=multigrid", "method=gmres&preconditioner=block_jacobi",
                              "method=bicgstab"):
                    with self.subTest(ranks=ranks, type=type, query=query):
                        ids = self.at_once(service, b, query + "&alone=0")
                        for i, id in enumerate(ids):
                            job = self.ended(service, id)
                            self.assertEqual((job["state"], job["merged"], job["columns"]), ("done", 5, 1), job)
                            if "bicgstab" in query:  # it begins anew after a breakdown, with all columns
                                x = np.frombuffer(self.x_of(service, id), b.dtype).astype(np.float64)
                                rtol = 1e-8 if type == "f64" else 1e-5
                                self.assertLessEqual(np.linalg.norm(b[i] - self.grid @ x), 1.1 * rtol * np.linalg.norm(b[i]))
                                continue
                            wide = np.zeros((MERGED_COLUMNS, b.shape[1]), b.dtype)
                            wide[-1] = b[i]
                            answer = self.solve(service, wide, query + f"&k={MERGED_COLUMNS}&wait=60&keep=1", status=200)
                            self.assertEqual(self.x_of(service, id), answer.body[-b[i].nbytes:])
                            of_wide = self.job(service, answer.headers["Shardmat-Job"])
                            self.assertEqual(job["result"][0], of_wide["result"][-1])
                            self.assertEqual(job["iteration"], job["result"][0]["iterations"])
                            if i != 2:
                                self.assertEqual(job["history"][-1][0], job["iteration"])
                            alone = self.solve(service, b[i], query + "&wait=60&alone=1&keep=1", status=200)
                            of_alone = self.job(service, alone.headers["Shardmat-Job"])
                            self.assertEqual(of_alone["merged"], 1)
                            self.assertLessEqual(abs(of_alone["iteration"] - job["iteration"]), 0.2 * job["iteration"])
                        for job in service.get("/v1/jobs").json["jobs"]:
                            service.ask("DELETE", f"/v1/jobs/{job['id']}")
                self.assertEqual(service.ask("POST", "/v1/matrices/grid/unload").status, 200)
            self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_which_are_merged(self):
        service = self.start("--ranks", 2)
        self.solvable(service)
        b, pair = self.b(1, columns=10), self.b(2, columns=2)
        for number, expected in ((2, [2, 2]), (8, [8] * 8), (10, [2] * 2 + [8] * 8)):
            ids = self.at_once(service, b[:number])
            self.assertEqual([self.ended(service, id)["state"] for id in ids], ["done"] * number)
            self.assertEqual(self.merged(service), expected)
            for id in ids:
                self.assertEqual(service.ask("DELETE", f"/v1/jobs/{id}").status, 204)
        others = [QUERY, QUERY.replace("alone=0", "alone=1"), QUERY + "&k=2", QUERY + "&rtol=1e-9", QUERY + "&priority=low", QUERY]
        ids = self.at_once(service, [b[0], b[0], pair, b[0], b[0], b[1]], others)
        self.assertEqual([self.ended(service, id)["merged"] for id in ids], [2, 1, 1, 1, 1, 2])
        x, _ = self.of_command(b[0], 2, "f64", "--solver", "cg", "--preconditioner", "jacobi")
        self.assert_bits(self.x_of(service, ids[1]), x.tobytes(), close=1e-6)
        again = self.at_once(service, [b[0], b[1]], [f"{QUERY}&x0={ids[0]}", f"{QUERY}&x0={ids[5]}"])
        self.assertEqual([(job := self.ended(service, id))["merged"] for id in again], [2, 2])
        self.assertEqual(job["iteration"], 0)  # it was solved already
        self.assertEqual(service.terminate(), OK, service.report())

    def test_no_merge(self):
        service = self.start("--ranks", 2, "--no-merge")
        self.solvable(service)
        b = self.b(1, columns=3)
        for id, one in zip(self.at_once(service, b), b):
            self.assertEqual(self.ended(service, id)["merged"], 1)
            x, _ = self.of_command(one, 2, "f64", "--solver", "cg", "--preconditioner", "jacobi")
            self.assert_bits(self.x_of(service, id), x.tobytes(), close=1e-6)
        self.assertEqual(service.terminate(), OK, service.report())


class Life(MergeTest):
    def test_what_is_wrong_with_one_is_not_wrong_with_the_others(self):
        service = self.start("--ranks", 2)
        self.solvable(service)
        b = self.b(1, columns=4)
        b[1, 7] = np.nan
        jobs = [self.ended(service, id) for id in self.at_once(service, b)]
        self.assertEqual([job["state"] for job in jobs], ["done", "failed", "done", "done"])
        self.assertEqual((jobs[1]["code"], jobs[1]["merged"]), ("bad_job", 1))
        self.assertIn("NaN", jobs[1]["reason"])
        easy = self.grid @ np.ones(self.grid.shape[0])  # the same settings, fewer iterations
        most = self.ended(service, self.at_once(service, [easy])[0])["iteration"]
        ids = self.at_once(service, [easy, b[0]], f"{QUERY}&max_iterations={most}")
        jobs = [self.ended(service, id) for id in ids]
        self.assertEqual([(job["state"], job["merged"]) for job in jobs], [("done", 2), ("failed", 2)])
        self.assertEqual((jobs[1]["code"], jobs[1]["iteration"]), ("not_converged", most))
        self.assertEqual(len(self.x_of(service, ids[1])), b[0].nbytes)  # as far as it came
        self.assertEqual(service.terminate(), OK, service.report())

    ENDLESS = "alone=0&method=gmres&preconditioner=none&restart=1&rtol=1e-300&max_iterations=1000000000"

    def endless_at_once(self, service, count, more=()):
        """Jobs on slow that do not end by themselves, of which each has some more of a query."""
        queries = [self.ENDLESS + one for one in more] + [self.ENDLESS] * (count - len(more))
        return self.at_once(service, self.b(1, columns=count), queries, "slow", self.ENDLESS + "&limit=0.2")

    def test_each_can_be_ended(self):
        service = self.start("--ranks", 2)
        self.solvable(service, "slow", "slow.h5")
        first, limited, third, last = self.endless_at_once(service, 4, ("", "&limit=3"))
        self.running(service, last)
        answer = service.ask("DELETE", f"/v1/jobs/{first}")
        self.assertEqual((answer.status, answer.json["state"]), (200, "cancelled"), answer)
        job = self.ended(service, limited)
        self.assertEqual((job["state"], job["code"]), ("failed", "time_limit"))
        for id in (first, limited):  # the others go on with theirs
            self.assert_problem(service.get(f"/v1/jobs/{id}/x"), 409, "no_result")
        self.assertEqual([self.job(service, id)["state"] for id in (third, last)], ["running"] * 2)
        self.assertEqual(service.ask("DELETE", f"/v1/jobs/{third}").json["state"], "cancelled")
        before = self.job(service, last)["iteration"]
        self.running(service, last, before + 1)
        self.assertEqual(service.ask("DELETE", f"/v1/jobs/{last}").json["state"], "cancelled")
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
        self.assertEqual(service.get("/v1/vectors").json["vectors"], [])
        self.assertEqual(service.get("/v1/matrices/slow").json["jobs"], 0)
        self.assertEqual(service.terminate(), OK, service.report())

    def test_a_vector_of_an_ended_one_is_dropped(self):
        service = self.start("--ranks", 2)
        self.solvable(service, "slow", "slow.h5")
        b = self.b(1, columns=3)
        ids = self.at_once(service, b, "alone=0&method=gmres&preconditioner=none&restart=1&rtol=0.3&max_iterations=1000000", "slow")
        self.running(service, ids[1])
        self.assertEqual(service.ask("DELETE", f"/v1/jobs/{ids[0]}").json["state"], "cancelled")
        self.assertEqual([self.ended(service, id)["state"] for id in ids], ["cancelled", "done", "done"])
        self.assertEqual(len(service.get("/v1/vectors").json["vectors"]), 2)
        self.assertEqual(service.terminate(), OK, service.report())

    def test_a_lost_rank_is_forgiven_once(self):
        service = self.start("--ranks", 2, "--restart-delay", 0.05)
        self.solvable(service, "slow", "slow.h5")
        ids = self.endless_at_once(service, 3)
        self.running(service, ids[0])
        os.kill(service.workers()[-1], signal.SIGKILL)
        for id in ids:
            self.begun_again(service, id)
        os.kill(service.workers()[0], signal.SIGKILL)
        for id in ids:
            job = self.ended(service, id)
            self.assertEqual((job["state"], job["code"]), ("failed", "rank_lost"))
        self.assertEqual(service.terminate(), OK, service.report())

    def test_a_client_that_leaves_does_not_disturb_the_others(self):
        service = self.start("--ranks", 1)
        self.solvable(service)
        b = self.b(1, columns=3)
        answers = [None] * 2
        with service.open() as leaver:
            with self.held(service, QUERY):
                leaver.sendall(b"POST /v1/matrices/grid/solve?%s&wait=600 HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
                               % (QUERY.encode(), b[2].nbytes) + b[2].tobytes())
                threads = [threading.Thread(target=lambda i=i: answers.__setitem__(i, self.solve(service, b[i], QUERY + "&wait=60"))) for i in range(2)]
                for thread in threads:
                    thread.start()
                service.wait_for("four jobs", lambda: len(service.get("/v1/jobs").json["jobs"]) == 4)
                leaver.close()
                service.wait_for("the end of one", lambda: sum(job["state"] == "cancelled" for job in service.get("/v1/jobs").json["jobs"]) == 1)
        for thread in threads:
            thread.join()
        for i in range(2):
            self.assertEqual(answers[i].status, 200, answers[i])
            self.assertLessEqual(np.linalg.norm(b[i] - self.grid @ np.frombuffer(answers[i].body)), 1.01e-8 * np.linalg.norm(b[i]))
        self.assertEqual(service.terminate(), OK, service.report())


    def test_what_was_accepted_ends_before_the_service_does(self):
        service = self.start("--ranks", 2)
        self.solvable(service)
        b, answers = self.b(1, columns=8), [None] * 8
        with self.held(service, QUERY):
            threads = [threading.Thread(target=lambda i=i: answers.__setitem__(i, self.solve(service, b[i], QUERY + "&wait=60"))) for i in range(8)]
            for thread in threads:
                thread.start()
            service.wait_for("nine jobs", lambda: len(service.get("/v1/jobs").json["jobs"]) == 9)
        self.assertEqual(service.terminate(), OK, service.report())
        for thread in threads:
            thread.join()
        for i in range(8):
            self.assertEqual(answers[i].status, 200, answers[i])
            self.assertLessEqual(np.linalg.norm(b[i] - self.grid @ np.frombuffer(answers[i].body)), 1.01e-8 * np.linalg.norm(b[i]))

    def test_more_than_it_takes(self):
        service = self.start("--ranks", 1)
        self.solvable(service)
        b = self.b(1, columns=80)
        with self.held(service, QUERY):
            answers = [self.solve(service, one, QUERY) for one in b]
        self.assertEqual([answer.status for answer in answers], [202] * 63 + [429] * 17)  # 64 with the first one
        for answer in answers[63:]:
            self.assert_problem(answer, 429, "too_many_jobs")
        for one, answer in zip(b, answers[:63]):
            self.assertEqual(self.ended(service, answer.json["id"])["state"], "done")
            x = np.frombuffer(self.x_of(service, answer.json["id"]))
            self.assertLessEqual(np.linalg.norm(one - self.grid @ x), 1.01e-8 * np.linalg.norm(one))
        self.assertEqual(self.solve(service, b[0], QUERY + "&wait=60").status, 200)
        self.assertEqual(service.terminate(), OK, service.report())


if __name__ == "__main__":
    unittest.main()
