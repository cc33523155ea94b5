"""openapi.json: a validator of OpenAPI takes it, and a running service answers as its schemas say."""

import json
import os
import re
import subprocess
import unittest

from support import ROOT
from test_serve_solve import SolveTest

try:
    import jsonschema
except ImportError:
    jsonschema = None

FILE = ROOT / "tools/serve/handlers/openapi.json"
SCHEMAS = "#/components/schemas/"


class Description(unittest.TestCase):
    @unittest.skipUnless(os.environ.get("TEST_OPENAPI_VALIDATOR"), "TEST_OPENAPI_VALIDATOR names no validate-api-cli.js (tests/run.sh --label browser installs it)")
    def test_a_validator_takes_it(self):
        result = subprocess.run(["node", os.environ["TEST_OPENAPI_VALIDATOR"], FILE], capture_output=True, text=True)
        self.assertEqual((result.returncode, json.loads(result.stdout)), (0, {"valid": True}), result)

    def test_every_reference_leads_somewhere(self):
        api = json.loads(FILE.read_text())
        for name in re.findall(r'"\$ref": "#/([^"]+)"', FILE.read_text()):
            found = api
            for step in name.split("/"):
                self.assertIn(step, found, name)
                found = found[step]


@unittest.skipUnless(jsonschema, "needs python3-jsonschema (deploy/install-dependencies.sh --tests)")
class Answers(SolveTest):
    def setUp(self):
        super().setUp()
        self.api = json.loads(FILE.read_text())
        self.seen = set()

    def operation(self, method, path):
        """The operation of a path without its query, and the template that it stands under."""
        for template, operations in self.api["paths"].items():
            if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), path) and method.lower() in operations:
                return template, operations[method.lower()]
        self.fail(f"openapi.json has no {method} {path}")

    def check(self, service, method, target, body=None, **headers):
        answer = service.ask(method, target, body, **headers)
        template, operation = self.operation(method, target.split("?")[0])
        responses = operation["responses"]
        response = responses.get(str(answer.status), responses["default"])
        if "$ref" in response:
            response = self.api["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
        kind = answer.headers.get("Content-Type", "").split(";")[0]
        if kind:
            self.assertIn(kind, response.get("content", {}), (method, target, answer))
        if kind == "application/json":
            schema = {**response["content"][kind]["schema"], "components": self.api["components"]}
            jsonschema.Draft202012Validator(schema).validate(answer.json)
        self.seen.add((method, template))
        return answer

    def test_a_running_service_answers_as_its_schemas_say(self):
        service = self.start()
        b = self.b(1)[0]
        check = lambda *request, **headers: self.check(service, *request, **headers)
        self.assertEqual(check("POST", "/v1/matrices/grid/load?wait=1", b'{"source": "grid.h5", "solvable": true}').status, 200)
        self.assertEqual(check("POST", "/v1/matrices/none/load?wait=1", b'{"source": "none.h5"}').status // 100, 4)
        self.assertEqual(check("POST", "/v1/matrices/grid/solve?method=cg&keep=1", b.tobytes()).status, 202)
        job = check("GET", "/v1/jobs").json["jobs"][0]["id"]
        service.wait_for("the end of a job", lambda: check("GET", f"/v1/jobs/{job}").json["state"] == "done")
        check("GET", f"/v1/jobs/{job}/x")
        self.assertEqual(check("POST", "/v1/matrices/grid/solve?method=cg&wait=60", b.tobytes()).status, 200)
        self.assertEqual(check("POST", "/v1/matrices/grid/solve?method=none&wait=60", b.tobytes()).status, 422)
        self.assertEqual(check("POST", "/v1/matrices/grid/eigen?count=2&which=largest&wait=60").status, 200)
        self.assertEqual(check("POST", "/v1/matrices/grid/multiply", b.tobytes()).status, 200)
        self.assertEqual(check("POST", "/v1/matrices/grid/multiply", b.tobytes()[8:]).status, 422)
        vector = check("POST", "/v1/vectors", b'{"matrix": "grid"}').json["id"]
        check("PUT", f"/v1/vectors/{vector}", b.tobytes())
        check("GET", f"/v1/vectors/{vector}")
        check("GET", "/v1/vectors")
        check("DELETE", f"/v1/vectors/{vector}")
        self.assertEqual(check("GET", f"/v1/vectors/{vector}").status, 404)
        for path in ("matrices", "matrices/grid", "matrices/grid/spy", "ranks", "library", "jobs"):
            self.assertEqual(check("GET", f"/v1/{path}").status, 200, path)
        for path in ("", "/health/live", "/health/ready", "/models/grid", "/models/grid/ready", "/models/grid/config", "/models/grid/stats"):
            self.assertEqual(check("GET", f"/v2{path}").status, 200, path)
        check("POST", "/v2/repository/index")
        check("GET", "/metrics")
        check("POST", "/v1/matrices/grid/pin", b'{"pinned": true}')
        check("DELETE", f"/v1/jobs/{job}")
        check("POST", "/v1/matrices/grid/unload")
        self.assertGreater(len(self.seen), 25)
        with self.assertRaises(jsonschema.ValidationError):  # it looks
            jsonschema.Draft202012Validator({"$ref": SCHEMAS + "problem", "components": self.api["components"]}).validate({"error": 3})


if __name__ == "__main__":
    unittest.main()
