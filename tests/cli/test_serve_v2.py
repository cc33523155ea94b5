"""The Open Inference Protocol (KServe v2) of the service, by the bytes on the wire."""

import json
import unittest

import numpy as np

from support import OK
from test_serve import NAMES, ServiceTest

DATATYPES = {"f64": "FP64", "f32": "FP32"}


class V2Test(ServiceTest):
    def infer(self, service, request, binary=b"", name="bar", version="", **headers):
        head = json.dumps(request).encode()
        if binary:
            headers["Inference_Header_Content_Length"] = str(len(head))
        return service.ask("POST", f"/v2/models/{name}{version}/infer", head + binary, **headers)

    def x_tensor(self, x, type="f64", **more):
        return {"name": "x", "datatype": DATATYPES[type], "shape": list(x.shape), **more}

    def binary_y(self, answer, type="f64"):
        """The y behind the JSON of an answer."""
        self.assertEqual(answer.status, 200, answer)
        head = int(answer.headers["Inference-Header-Content-Length"])
        tensor = json.loads(answer.body[:head])["outputs"][0]
        self.assertEqual((tensor["name"], tensor["datatype"]), ("y", DATATYPES[type]))
        self.assertEqual(tensor["parameters"]["binary_data_size"], len(answer.body) - head)
        return np.frombuffer(answer.body[head:], NAMES[type]).reshape(tensor["shape"])

    def error(self, answer, status, code, says=""):
        self.assert_problem(answer, status, code, says)


class Metadata(V2Test):
    def test_server_and_models(self):
        service = self.start("--ranks", 2)
        self.assertEqual(service.get("/v2").json["name"], "shardmat")
        extensions = service.get("/v2").json["extensions"]
        self.assertIn("binary_tensor_data", extensions)
        self.assertNotIn("system_shared_memory", extensions)
        self.assertEqual(service.get("/v2/systemsharedmemory/status").status, 404)
        self.error(service.get("/v2/models/bar"), 404, "no_matrix", "bar")
        self.assertEqual(service.get("/v2/models/bar/ready").status, 404)
        self.loaded(service, type="f32")
        rows, cols = self.matrix.shape
        for model in ("/v2/models/bar", "/v2/models/bar/versions/1"):
            self.assertEqual(service.get(model).json, {
                "name": "bar", "versions": ["1"], "platform": "shardmat", "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, cols]}],
                "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, rows]}], "batch_invariant": True})
            self.assertEqual(service.get(model + "/ready").json, {"name": "bar", "ready": True})
            self.assertEqual(service.get(model + "/config").json, {
                "name": "bar", "platform": "shardmat", "backend": "shardmat", "max_batch_size": 32,
                "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [cols]}], "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [rows]}]})
        self.error(service.get("/v2/models/bar/versions/2"), 404, "no_version")
        self.error(service.ask("POST", "/v2/models/bar/versions/2/infer", "{}"), 404, "no_version")
        service.load("bad", "none.h5")
        self.error(service.get("/v2/models/bad/ready"), 503, "failed")
        x = self.vector(1, "f32")[0]
        for _ in range(3):
            service.multiply("bar", x)
        service.multiply("bar", x[1:])
        [stats] = service.get("/v2/models/bar/stats").json["model_stats"]
        self.assertEqual((stats["name"], stats["version"], stats["inference_count"], stats["execution_count"]), ("bar", "1", 3, 3))
        self.assertEqual(stats["inference_stats"]["success"]["count"], 3)
        self.assertEqual(stats["inference_stats"]["fail"]["count"], 2)  # and the version that does not exist
        self.assertGreater(stats["inference_stats"]["success"]["ns"], 0)

    def test_repository(self):
        service = self.start()
        post = lambda path, body=None: service.ask("POST", f"/v2/repository/{path}", None if body is None else json.dumps(body))
        self.assertEqual(post("index").json, [])
        self.assertEqual(post("models/bar/load", {"parameters": {"source": "bar.h5"}}).json, {})
        self.error(post("models/bad/load", {"parameters": {"source": "none.h5"}}), 422, "bad_matrix")
        self.error(post("models/bad2/load", {}), 400, "malformed", "source is missing")
        self.error(post("models/bad2/load", {"parameters": {"config": "{}"}}), 400, "malformed", "config")
        self.error(post("models/bar/load", {}), 409, "loaded")
        index = {one["name"]: (one["version"], one["state"]) for one in post("index").json}
        self.assertEqual(index, {"bar": ("1", "READY"), "bad": ("1", "UNAVAILABLE")})
        self.assertEqual([one["name"] for one in post("index", {"ready": True}).json], ["bar"])
        self.error(post("models/bad/load", {}), 422, "bad_matrix")  # as it was asked for before
        self.assertEqual(post("models/bar/unload", {"parameters": {"unload_dependents": False}}).json, {})
        self.error(post("models/bar/unload"), 404, "no_matrix")


class Infer(V2Test):
    def test_all_forms_give_the_same_bits(self):
        service = self.start("--ranks", 2)
        for type in NAMES:
            with self.subTest(type=type):
                self.loaded(service, "bar", type=type)
                for columns in (1, 32):
                    x = self.vector(1, type, columns)
                    expected = service.multiply("bar", x, f"?k={columns}").body
                    for x in (x, x[0]) if columns == 1 else (x,):
                        tensor = self.x_tensor(x, type)
                        flat = [float(value) for value in x.ravel()]
                        nested = x.astype(float).tolist()
                        binary = {**tensor, "parameters": {"binary_data_size": x.nbytes}}
                        wanted = {"inputs": [binary], "parameters": {"binary_data_output": True}}
                        y = self.binary_y(self.infer(service, wanted, x.tobytes()), type)
                        self.assertEqual(y.shape, x.shape[:-1] + (self.matrix.shape[0],))
                        self.assertEqual(y.tobytes(), expected)
                        answers = [self.infer(service, {"inputs": [{**tensor, "data": data}], "id": "i"}) for data in (flat, nested)]
                        answers.append(self.infer(service, {"inputs": [binary], "id": "i"}, x.tobytes()))
                        for answer in answers:
                            self.assertEqual(answer.headers["Content-Type"], "application/json")
                            [output] = answer.json["outputs"]
                            self.assertEqual((answer.json["id"], answer.json["model_name"], answer.json["model_version"]), ("i", "bar", "1"))
                            self.assertEqual(output["shape"], list(y.shape))
                            self.assertEqual(np.array(output["data"], NAMES[type]).tobytes(), expected)
                        output = [{"name": "y", "parameters": {"binary_data": True}}]
                        answer = self.infer(service, {"inputs": [{**tensor, "data": flat}], "outputs": output})
                        self.assertEqual(self.binary_y(answer, type).tobytes(), expected)
                        raw = service.ask("POST", "/v2/models/bar/versions/1/infer", x.tobytes(), Inference_Header_Content_Length="0")
                        self.assertEqual(self.binary_y(raw, type).tobytes(), expected)
                self.assertEqual(service.ask("POST", "/v1/matrices/bar/unload").status, 200)
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
        self.assertEqual(service.terminate(), OK, service.report())

    def test_the_bytes_of_a_request_and_its_answer(self):
        service = self.start()
        self.loaded(service)
        x = self.vector(3)[0]
        head = b'{"inputs":[{"name":"x","shape":[975],"datatype":"FP64","parameters":{"binary_data_size":7800}}],"parameters":{"binary_data_output":true,"alpha":2.0}}'
        answer = service.raw(b"POST /v2/models/bar/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
                             b"Inference-Header-Content-Length: %d\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (len(head), len(head) + 7800)
                             + head + x.tobytes(), ends=False)
        fields, body = answer.split(b"\r\n\r\n", 1)
        self.assertTrue(fields.startswith(b"HTTP/1.1 200 OK\r\n"), fields)
        self.assertIn(b"\r\nContent-Type: application/octet-stream\r\n", fields)
        said = (b'{"model_name":"bar","model_version":"1","outputs":[{"name":"y","datatype":"FP64","shape":[975],'
                b'"parameters":{"binary_data_size":7800}}]}')
        self.assertIn(b"\r\nInference-Header-Content-Length: %d" % len(said), fields)
        self.assertEqual(body, said + service.multiply("bar", x, "?alpha=2").body)

    def test_json_has_no_numbers_for_nan_and_infinity(self):
        service = self.start()
        self.loaded(service)
        x = self.vector(1)[0]
        for last in (np.inf, -np.inf, np.nan):
            wrong = x.copy()
            wrong[-1] = last
            request = {"inputs": [self.x_tensor(wrong, parameters={"binary_data_size": x.nbytes})]}
            self.error(self.infer(service, request, wrong.tobytes()), 422, "not_finite", '"binary_data": true')
            y = self.binary_y(self.infer(service, {**request, "parameters": {"binary_data_output": True}}, wrong.tobytes()))
            self.assertFalse(np.isfinite(y).all())
            named = {**request, "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}
            np.testing.assert_array_equal(self.binary_y(self.infer(service, named, wrong.tobytes())), y)
        large = {"inputs": [self.x_tensor(x, data=(1e308 * x).tolist())], "parameters": {"alpha": 1e308}}  # y overflows
        self.error(self.infer(service, large), 422, "not_finite", '"binary_data": true')
        for number in ("NaN", "Infinity", "1e999", "null"):
            text = json.dumps({"inputs": [self.x_tensor(x, data=x.tolist())]}).replace(repr(float(x[3])), number)
            self.error(service.ask("POST", "/v2/models/bar/infer", text), 400, "malformed")
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)

    def test_wrong_requests_get_their_status(self):
        service = self.start("--arena", "256KiB")
        self.loaded(service)
        x = self.vector(1)[0]
        good = self.x_tensor(x, parameters={"binary_data_size": x.nbytes})
        with_x = lambda **more: {"inputs": [{**good, **more}]}
        self.assertEqual(self.infer(service, with_x(), x.tobytes()).status, 200)
        for request, binary, status, code, says in (
                (with_x(datatype="FP32"), x.tobytes(), 422, "wrong_type", "FP64"), (with_x(shape=[974]), x.tobytes(), 422, "wrong_length", "975"),
                (with_x(shape=[2, 975]), x.tobytes(), 422, None, ""), (with_x(shape=[1000, 975]), x.tobytes(), 422, "too_many_columns", "at most"),
                (with_x(), x.tobytes()[8:], 422, "wrong_length", "7792"), (with_x(), x.tobytes() + bytes(8), 422, "wrong_length", "7808"),
                (with_x(parameters={"binary_data_size": 16}), x.tobytes(), 422, "wrong_length", ""),
                (with_x(name="z"), x.tobytes(), 400, "malformed", "name is x"), (with_x(parameters={"shared_memory_region": "r"}), x.tobytes(), 400, "malformed", "shared_memory_region"),
                ({**with_x(), "parameters": {"beta": 1}}, x.tobytes(), 400, "malformed", "alpha"),
                ({**with_x(), "parameters": {"timeout": 1e-3}}, x.tobytes(), 504, "deadline", ""),
                ({}, b"", 400, "malformed", "inputs"), ([], b"", 400, "malformed", "JSON object"),
                ({"inputs": [self.x_tensor(x, data=[1.0])]}, b"", 422, "wrong_length", "")):
            with self.subTest(request=str(request)[:200]):
                answer = self.infer(service, request, binary)
                self.error(answer, status, code or answer.json["code"], says)
        for length in ("-1", "x", "99999", "1e3"):
            answer = service.ask("POST", "/v2/models/bar/infer", x.tobytes(), Inference_Header_Content_Length=length)
            self.error(answer, 400, "malformed", "Inference-Header-Content-Length")
        self.error(service.ask("POST", "/v2/models/bar/infer", bytes(7801), Inference_Header_Content_Length="0"), 422, "wrong_length")
        self.error(service.ask("POST", "/v2/models/bar/infer", b" " * 1_100_000), 413, "too_long")
        self.error(self.infer(service, with_x(), bytes(1_000_000)), 413, "too_long")
        self.error(self.infer(service, with_x(), x.tobytes(), name="none"), 404, "no_matrix")
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
        self.assertEqual(self.infer(service, with_x(), x.tobytes()).status, 200)


if __name__ == "__main__":
    unittest.main()
