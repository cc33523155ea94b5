"""What an operator relies on: a full disk is told, logs hold nobody up, loads let products through, deadlines are kept, losses
are explained, and the end comes in order."""

import json
import os
import pathlib
import re
import signal
import socket
import threading
import time
import unittest

import numpy as np

from service import Service
from support import LIMIT, OK, PROGRAM, run
from test_schemas import faults, load as load_schema
from test_serve import ServiceTest
from test_serve_observe import ObserveTest

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class State(ObserveTest):
    def test_what_cannot_be_saved_is_told_and_saved_later(self):
        service = self.start()
        obstacle = self.path("state") / ".matrices.json.tmp"  # no file can be written here
        obstacle.mkdir()
        loaded = self.loaded(service)
        self.assertEqual((loaded["state"], loaded["saved"]), ("ready", False))
        self.assertRegex(loaded["warning"], "restart of the service would forget it: .*matrices.json: ")
        self.assertIs(service.get("/v1/matrices").json["matrices"][0]["saved"], False)
        found = self.figures(service)
        self.assertEqual(found["shardmat_state_saved", ()], 0)
        self.assertGreater(found["shardmat_state_save_failures_total", ()], 0)
        pinned = service.ask("POST", "/v1/matrices/bar/pin", '{"pinned": true}').json
        self.assertIs(pinned["saved"], False)
        result = self.call("client", "load", "other", "bar.h5", "--state", service.state)
        self.assertEqual(result.code, OK, result)
        self.assertIn("WARNING: this is not saved", result.err)
        v2 = service.ask("POST", "/v2/repository/models/third/load", '{"parameters": {"source": "bar.h5"}}')
        self.assertEqual((v2.status, v2.json["saved"]), (200, False))
        obstacle.rmdir()
        service.wait_for("the file", lambda: service.get("/v1/matrices/bar").json["saved"])
        self.assertNotIn("warning", service.get("/v1/matrices/bar").json)
        self.assertEqual(self.figures(service)["shardmat_state_saved", ()], 1)
        obstacle.mkdir()
        gone = service.ask("POST", "/v1/matrices/third/unload").json
        self.assertEqual((gone["state"], gone["saved"]), ("unloaded", False))
        obstacle.rmdir()
        self.assertEqual(service.terminate(), OK, service.report())
        again = self.start()
        names = {one["name"]: one["pinned"] for one in again.get("/v1/matrices").json["matrices"]}
        self.assertEqual(names, {"bar": True, "other": False})

    def test_a_load_names_kernel_exchange_and_order(self):
        service = self.start("--ranks", 2)
        x = self.vector(3, columns=4)
        wanted = (self.matrix @ x.T).T.ravel()
        asked = {"kernel": "rbp_csr_host", "exchange": "allgather", "sort": "local"}
        loaded = self.loaded(service, **asked)
        self.assertEqual((loaded["exchange"], loaded["sort"]), ("allgather", "local"))
        self.assertEqual({rank["kernel"] for rank in loaded["ranks"]}, {"rbp_csr_host"})
        columns = self.y_of(service.multiply("bar", x, "?k=4"))
        np.testing.assert_allclose(columns, wanted, atol=1e-12)
        one = self.y_of(service.multiply("bar", x[1:2]))
        self.assertEqual(one.tobytes(), columns.reshape(4, -1)[1].tobytes())
        self.assert_problem(service.load("bar", "bar.h5", **asked), 409, "loaded")
        self.assertGreater(self.loaded(service)["generation"], loaded["generation"])  # another kernel: loaded anew
        self.loaded(service, **asked)
        self.assertEqual(service.terminate(), OK, service.report())
        again = self.start("--ranks", 2)
        again.wait_for("the matrix", lambda: again.get("/v1/matrices/bar").json["state"] == "ready")
        kept = again.get("/v1/matrices/bar").json
        self.assertEqual((kept["exchange"], kept["sort"], kept["ranks"][0]["kernel"]), ("allgather", "local", "rbp_csr_host"))
        self.assertEqual(self.y_of(again.multiply("bar", x, "?k=4")).tobytes(), columns.tobytes())
        for field, value, says in (("kernel", "rbp_csr_hots", "did you mean"), ("kernel", "coo_host", "coo_host"),
                                   ("exchange", "post", "post"), ("sort", "up", "choose auto, none or local")):
            answer = again.load("wrong", "bar.h5", **{field: value})
            self.assertEqual(answer.status, 422, answer)
            self.assertIn(says, answer.json["error"])
        result = self.call("client", "load", "by_command", "bar.h5", "--kernel", "rbp_ell_r_host", "--sort", "none", "--state",
                           again.state)
        self.assertEqual(result.code, OK, result)
        self.assertEqual(again.get("/v1/matrices/by_command").json["ranks"][0]["kernel"], "rbp_ell_r_host")

    def test_few_failed_loads_are_kept(self):
        service = self.start()
        self.loaded(service)
        for number in range(105):
            self.assertEqual(service.load(f"bad{number}", "none.h5").status, 422)
        names = [one["name"] for one in service.get("/v1/matrices").json["matrices"]]
        self.assertEqual(len(names), 101)
        self.assertNotIn("bad4", names)
        self.assertTrue({"bar", "bad5", "bad104"} <= set(names))


class Logs(ObserveTest):
    def lose_a_rank(self, service):
        before = service.get("/v1/ranks").json["restarts"]
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == before + 1)
        service.wait_until_ready()

    def test_a_log_that_nobody_reads_holds_nobody_up(self):
        reads, writes = os.pipe()
        self.addCleanup(os.close, reads)
        service = Service(self.library, self.path("state"), "--access-log", "-", output=writes)
        self.addCleanup(service.close)
        os.close(writes)
        service.wait_until_ready()
        self.loaded(service)
        connection = service.connection()
        body = json.dumps({"source": "no" * 1000})
        for number in range(1500):
            self.assertEqual(service.ask("POST", f"/v1/matrices/m{number % 50}/load?wait=1", body, connection).status, 422)
        connection.close()
        self.assertEqual(service.multiply("bar", self.vector(1)[0]).status, 200)
        lost = self.figures(service)["shardmat_log_lines_lost_total", (("log", "service"),)]
        self.assertGreater(lost, 0)
        text = b""
        while b"lines of this log were lost" not in text:
            text = text[-100:] + os.read(reads, 1 << 16)
        self.assertIn("access", [dict(labels)["log"] for name, labels in self.figures(service) if name == "shardmat_log_lines_lost_total"])
        service.process.send_signal(signal.SIGTERM)
        reader = threading.Thread(target=lambda: [None for _ in iter(lambda: os.read(reads, 1 << 16), b"")])
        reader.start()
        self.assertEqual(service.process.wait(LIMIT), OK)
        reader.join()

    def test_a_log_that_cannot_be_written_ends_nothing(self):
        for output in ("full", "closed"):
            with self.subTest(output=output):
                if output == "full":
                    with open("/dev/full", "w") as full:
                        service = Service(self.library, self.path(output), "--access-log", "-", output=full)
                else:
                    service = ClosedStreams(self.library, self.path(output))
                self.addCleanup(service.close)
                service.wait_until_ready()
                self.loaded(service)
                self.lose_a_rank(service)
                self.assertGreater(self.figures(service)["shardmat_log_lines_lost_total", (("log", "service"),)], 0 if output == "full" else -1)
                self.assertEqual(service.multiply("bar", self.vector(1)[0]).status, 200)
                self.assertEqual(service.terminate(), OK)

    def test_a_lost_rank_is_named_with_its_signal(self):
        service = self.start("--ranks", 2)
        with self.listen(service) as client:
            self.read_until(client, b"event: service")
            self.lose_a_rank(service)
            service.wait_for("the signal", lambda: service.get("/v1/ranks").json["last_loss"].get("signal") == 9)
            event = self.read_until(client, b"event: ready")
        self.assertIn(b"event: rank_lost", event)
        loss = service.get("/v1/ranks").json["last_loss"]
        self.assertIn(loss["rank"], (0, 1))
        self.assertRegex(loss["time"], f"^{TIME}$")
        service.wait_for("the signal in the log", lambda: "signal 9 (Killed)" in service.report())
        self.assertIn("signal 9", self.succeed("client", "status", "--state", service.state).out)

    def test_logs_of_workers_are_kept(self):
        for number in range(5):
            service = self.start("--ranks", 2)
            self.lose_a_rank(service)
            self.assertEqual(service.terminate(), OK)
        logs = sorted(path.name for path in self.path("state").glob("workers.log*"))
        self.assertEqual(logs, ["workers.log", "workers.log.1", "workers.log.2", "workers.log.3"])
        for name in logs:
            lines = (self.path("state") / name).read_text().splitlines()
            self.assertRegex(lines[0], r" started as process \d+: ")  # before anything that a launcher may say or not
            for line in lines:
                self.assertRegex(line, f"^{TIME} ")
        for line in service.report().splitlines():
            self.assertRegex(line, f"^{TIME} ")

    def test_threads_and_cores_are_told(self):
        service = self.start("--ranks", 2, env={"OMP_NUM_THREADS": "1"})
        for rank in service.get("/v1/ranks").json["ranks"]:
            self.assertEqual((rank["threads"], rank["cores"]), (1, len(os.sched_getaffinity(0))))
        self.assertRegex(self.succeed("client", "status", "--state", service.state).out, r"1 thread on \d+ cores? \(")
        self.assertRegex(service.report(), r"rank 1 of 2 on .*, 1 thread on \d+ cores? \(")

    def test_cores_that_two_services_share_are_told(self):
        first = self.start("--ranks", 2)
        second = self.start(state="second")
        for service, others in ((first, 1), (second, 2)):
            service.wait_for("the other service", lambda: service.get("/v1/ranks").json.get("shared_cores", {}).get("ranks", 0) >= others)
            self.assertGreaterEqual(len(os.sched_getaffinity(0)), service.get("/v1/ranks").json["shared_cores"]["cores"])
        self.assertRegex(self.succeed("client", "status", "--state", first.state).out, r"cores? shared with \d+ ranks? of other services")
        schema = load_schema("service")
        self.assertEqual(faults(self.json_of("client", "status", "--state", first.state), schema, schema), [])
        self.assertRegex(second.report(), r"note: ranks of other services may use \d+ of the ranks' cores \(process")


class ClosedStreams(Service):
    """A service that was started without standard output and standard error."""

    def __init__(self, *arguments):
        def close():
            os.close(1)
            os.close(2)

        super().__init__(*arguments, preexec_fn=close)


class Loads(ServiceTest):
    def test_products_are_carried_out_while_a_matrix_is_loaded(self):
        for step in (["generate", "poisson27", "--n", 48, self.path("big.h5")], ["convert", self.path("big.h5"), self.library / "big.mtx"]):
            result = run([PROGRAM, *step], self.directory)
            self.assertEqual(result.code, OK, result)
        self.addCleanup((self.library / "big.mtx").unlink)
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks):
                service = self.start("--ranks", ranks, "--max-queue-ms", 600000)
                if ranks == 1:
                    self.loaded(service)  # later services, with other numbers of ranks, load it themselves
                x = self.vector(ranks)[0]
                expected = self.y_of(service.multiply("bar", x)).tobytes()
                self.assertEqual(service.ask("POST", "/v1/matrices/big/load", '{"source": "big.mtx"}').status, 202)
                before = 0  # products that were answered before the load was done
                while True:
                    self.assertEqual(self.y_of(service.multiply("bar", x)).tobytes(), expected)
                    vector = service.ask("POST", "/v1/vectors", '{"matrix": "bar"}')
                    self.assertEqual(vector.status, 201, vector)
                    self.assertEqual(service.ask("DELETE", "/v1/vectors/" + vector.json["id"]).status, 204)
                    if service.get("/v1/matrices/big").json["state"] != "loading":
                        break
                    before += 1
                self.assertGreater(before, 2)
                big = service.get("/v1/matrices/big").json
                self.assertEqual(big["state"], "ready", big)
                ones = np.ones(big["cols"]) * np.linspace(1, 2, big["cols"])
                first = self.y_of(service.multiply("big", ones)).tobytes()
                self.assertEqual(service.ask("POST", "/v1/matrices/big/unload").status, 200)
                self.loaded(service, "big", "big.mtx")
                self.assertEqual(self.y_of(service.multiply("big", ones)).tobytes(), first)
                self.assertEqual(service.ask("POST", "/v1/matrices/big/unload").status, 200)
                self.assertEqual(service.terminate(), OK, service.report())

    def test_a_load_in_the_background_is_ended_with_the_service(self):
        result = run([PROGRAM, "generate", "poisson27", "--n", 90, self.library / "huge.h5"], self.directory)
        self.assertEqual(result.code, OK, result)
        self.addCleanup((self.library / "huge.h5").unlink)
        service = self.start("--ranks", 2)
        self.assertEqual(service.ask("POST", "/v1/matrices/huge/load", '{"source": "huge.h5"}').status, 202)
        self.assertEqual(service.terminate(), OK, service.report())
        self.assertEqual(service.processes(), [])

    def test_a_deadline_that_passes_while_a_request_waits_is_answered_at_once(self):
        service = self.start("--timeout", 600)
        self.loaded(service)
        x, answers = self.vector(1)[0], {}
        [rank] = service.workers()

        def client(number):
            answers[number] = service.multiply("bar", x, **({} if number == 0 else {"Shardmat_Deadline_Ms": "300"}))

        os.kill(rank, signal.SIGSTOP)  # as if it were at a long product
        clients = [threading.Thread(target=client, args=(number,)) for number in range(2)]
        try:
            clients[0].start()
            service.wait_for("the first product", lambda: service.get("/v1/ranks").json["arena"]["used"] > 0)
            clients[1].start()
            service.wait_for("the answer", lambda: 1 in answers)
            self.assertNotIn(0, answers)
        finally:
            os.kill(rank, signal.SIGCONT)
            for one in clients:
                one.join()
        self.assert_problem(answers[1], 504, "deadline", "passed")
        self.assertEqual(answers[0].status, 200)


class Supervised(ServiceTest):
    """What systemd is told of a unit of Type=notify."""

    def manager(self, name):
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.settimeout(LIMIT)
        manager.bind(name.replace("@", "\0"))
        return manager

    def until(self, manager, text):
        """All lines up to the datagram that has this one, and these of it."""
        lines = []
        while text not in lines:
            lines += manager.recv(4096).decode().splitlines()
        return lines

    def test_readiness_signs_of_life_losses_and_the_end(self):
        for name, process in ((str(self.path("notify")), None), ("@" + str(self.path("abstract")), None), (str(self.path("other")), "1")):
            with self.subTest(name, process=process):
                manager = self.manager(name)
                more = {} if process is None else {"WATCHDOG_PID": process}
                service = self.start("--ranks", 2, env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "2000", **more})
                # Nobody has read: the queue is full of signs of life. What finds no room comes later.
                lines = self.until(manager, "READY=1")
                self.assertEqual(lines[0], "STATUS=starting the ranks and loading the matrices")
                self.assertEqual("WATCHDOG=1" in lines, process is None)
                for worker in service.workers():
                    variables = pathlib.Path(f"/proc/{worker}/environ").read_bytes()
                    self.assertNotIn(b"NOTIFY_SOCKET", variables)
                    self.assertNotIn(b"WATCHDOG", variables)
                os.kill(service.workers()[0], signal.SIGKILL)
                lines = self.until(manager, "READY=1")
                self.assertRegex("\n".join(lines), "STATUS=rank [01] ended.*; the ranks are being started again\n")
                service.process.send_signal(signal.SIGTERM)
                self.assertIn("STATUS=ending: accepted requests are answered first", self.until(manager, "STOPPING=1"))
                self.assertEqual(service.process.wait(LIMIT), OK, service.report())

    def test_a_loop_that_stands_still_gives_no_sign(self):
        manager = self.manager(str(self.path("notify")))
        service = self.start(env={"NOTIFY_SOCKET": str(self.path("notify")), "WATCHDOG_USEC": "2000"})
        self.until(manager, "READY=1")
        service.process.send_signal(signal.SIGSTOP)
        while pathlib.Path(f"/proc/{service.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
            time.sleep(0.01)
        manager.setblocking(False)
        with self.assertRaises(BlockingIOError):  # once what had been sent is read
            while True:
                manager.recv(4096)
        time.sleep(0.1)
        self.assertRaises(BlockingIOError, manager.recv, 4096)
        service.process.send_signal(signal.SIGCONT)
        manager.settimeout(LIMIT)
        self.until(manager, "WATCHDOG=1")

    def test_a_socket_that_nobody_reads_is_told_once(self):
        service = self.start(env={"NOTIFY_SOCKET": str(self.path("none")), "WATCHDOG_USEC": "2000"})
        self.assertEqual(service.report().count("NOTIFY_SOCKET"), 1, service.report())
        self.assertIn(f"{self.path('none')}: systemd cannot be told how the service is: No such file or directory", service.report())
        self.assertEqual(service.terminate(), OK, service.report())


class End(ServiceTest):
    def test_readiness_goes_first(self):
        service = self.start("--drain-seconds", 600)
        self.loaded(service)
        service.process.send_signal(signal.SIGTERM)
        service.wait_for("503", lambda: service.get("/v2/health/ready").status == 503)
        self.assertEqual(service.get("/v2/health/live").status, 200)
        self.assertEqual(service.get("/v1/ranks").json["state"], "draining")
        self.assertEqual(service.multiply("bar", self.vector(1)[0]).status, 200)
        self.assertEqual(service.load("other", "bar.h5").status, 200)
        service.process.send_signal(signal.SIGTERM)  # at once
        self.assertEqual(service.process.wait(LIMIT), 128 + signal.SIGTERM)
        again = self.start("--drain-seconds", 0.3)
        self.assertEqual(again.terminate(), OK, again.report())


if __name__ == "__main__":
    unittest.main()
