#!/usr/bin/env python3
"""The manifests of deploy/kubernetes have the fields that Kubernetes knows, of their types, and no others: as Kubernetes' own
description of its interface and the MPI operator's schema say (tests/data/kubernetes). test_container.py runs the command lines."""

import copy
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error}: packages python3-jsonschema, python3-yaml (deploy/install-dependencies.sh --tests)")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER, DATA = ROOT / "deploy" / "kubernetes", ROOT / "tests" / "data" / "kubernetes"
KINDS = {("v1", "Service"): "io.k8s.api.core.v1.Service", ("apps/v1", "StatefulSet"): "io.k8s.api.apps.v1.StatefulSet"}
# What the MPI operator checks itself; its schema has strings there.
WORDS_OF_JOB = {("launcherCreationPolicy",): ["AtStartup", "WaitForWorkersReady"], ("runPolicy", "cleanPodPolicy"): ["None", "Running", "All"]}


def manifests(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def close(schema):
    """Fields that a schema does not name are mistakes; where Kubernetes takes a number or a word, both are right."""
    if isinstance(schema, list):
        for one in schema:
            close(one)
    if isinstance(schema, dict):
        if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema.setdefault("additionalProperties", False)
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            schema["type"] = ["integer", "string"]
        for one in schema.values():
            close(one)


def read_schema(name):
    schema = json.loads((DATA / name).read_text())
    close(schema)
    return schema


def schema_of(manifest):
    kind = manifest["apiVersion"], manifest["kind"]
    if kind in KINDS:
        return {"definitions": read_schema("kubernetes-v1.20.json")["definitions"], "$ref": f"#/definitions/{KINDS[kind]}"}
    assert kind == ("kubeflow.org/v2beta1", "MPIJob"), kind
    schema = read_schema("mpijob-v2beta1.json")
    schema["properties"]["metadata"] = {"type": "object"}
    for place, words in WORDS_OF_JOB.items():
        there = schema["properties"]["spec"]
        for step in place:
            there = there["properties"][step]
        there["enum"] = words
    return schema


def faults_of(manifest):
    """Fields that are unknown, missing, or of another type, with their places."""
    errors = jsonschema.Draft7Validator(schema_of(manifest)).iter_errors(manifest)
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]


class Manifests(unittest.TestCase):
    def test_fields(self):
        kinds = []
        for path in sorted(FOLDER.glob("*.yaml")):
            for manifest in manifests(path.name):
                kinds.append(manifest["kind"])
                self.assertEqual(faults_of(manifest), [], path)
        self.assertEqual(kinds, ["Service", "StatefulSet", "MPIJob"])

    def test_mistakes_are_found(self):
        service, served = manifests("serve.yaml")
        [job] = manifests("solve.yaml")
        container = ("spec", "template", "spec", "containers", 0)
        worker = ("spec", "mpiReplicaSpecs", "Worker", "template", "spec", "containers", 0)
        for manifest, place, name, value, says in (
                (service, ("spec", "ports", 0), "port", "8980", "spec.ports.0.port: '8980' is not of type 'integer'"),
                (service, ("spec", "ports", 0), "targetPort", [], "spec.ports.0.targetPort: [] is not of type 'integer', 'string'"),
                (service, ("spec",), "selectors", {}, "('selectors' was unexpected)"),
                (served, container, "lifenessProbe", {}, "('lifenessProbe' was unexpected)"),
                (served, (*container, "livenessProbe"), "periodSeconds", "10", "'10' is not of type 'integer'"),
                (served, (*container, "livenessProbe", "httpGet"), "port", None, "'port' is a required property"),
                (served, container, "command", "shardmat", "'shardmat' is not of type 'array'"),
                (served, container, "name", None, "'name' is a required property"),
                (served, (*container, "securityContext", "capabilities"), "drop", [1], "drop.0: 1 is not of type 'string'"),
                (served, ("spec", "volumeClaimTemplates", 0, "spec", "resources", "requests"), "storage", 1, "1 is not of type 'string'"),
                (job, ("spec",), "slotPerWorker", 4, "('slotPerWorker' was unexpected)"),
                (job, ("spec", "runPolicy"), "cleanPodPolicy", "running", "'running' is not one of"),
                (job, worker, "image", 7, "7 is not of type 'string'"),
                (job, (*worker, "resources", "limits"), "cpu", [], "[] is not of type 'integer', 'string'")):
            wrong = copy.deepcopy(manifest)
            there = wrong
            for step in place:
                there = there[step]
            if value is None:
                del there[name]
            else:
                there[name] = value
            with self.subTest(says):
                found = faults_of(wrong)
                self.assertGreaterEqual(len(found), 1)
                self.assertIn(says, " ".join(found))

    def test_the_three_probes_and_the_limits_of_the_containers(self):
        _, service = manifests("serve.yaml")
        [container] = service["spec"]["template"]["spec"]["containers"]
        probes = {name: container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")}
        self.assertEqual(probes, {"startupProbe": "/v2/health/ready", "livenessProbe": "/v2/health/live", "readinessProbe": "/v2/health/ready"})
        [job] = manifests("solve.yaml")
        pods = [service["spec"]["template"], *(replica["template"] for replica in job["spec"]["mpiReplicaSpecs"].values())]
        for pod in pods:
            self.assertEqual((pod["spec"]["securityContext"]["runAsNonRoot"], pod["spec"]["securityContext"]["runAsUser"]), (True, 1000))
            volumes = {volume["name"] for volume in pod["spec"]["volumes"]} | ({"state"} if pod is pods[0] else set())
            for container in pod["spec"]["containers"]:
                self.assertIs(container["securityContext"]["readOnlyRootFilesystem"], True)
                self.assertLessEqual({mount["name"] for mount in container["volumeMounts"]}, volumes)

    def launcher(self, folder, body):
        """What the launcher prints and its exit code, `folder` in place of /results. mpirun runs the scripts for files, and `body` in
        place of the solver, with its words."""
        [job] = manifests("solve.yaml")
        [container] = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
        mpirun = folder.parent / "bin" / "mpirun"
        mpirun.parent.mkdir(exist_ok=True)
        mpirun.write_text(f'#!/bin/bash\nif [ "$3" = bash ]; then shift 2; exec "$@"; fi\necho "$*"\n{body}\n')
        mpirun.chmod(0o755)
        words = [word.replace("/results", str(folder)) for word in container["command"] + container["args"]]
        process = subprocess.Popen(words, env=os.environ | {"PATH": f"{mpirun.parent}:{os.environ['PATH']}"}, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def test_a_launcher_that_was_deleted_goes_on_from_x(self):
        with tempfile.TemporaryDirectory() as place:
            results = pathlib.Path(place) / "results"
            results.mkdir()
            output = f"--output {results}/unfinished.h5"
            # The first is told to end while mpirun runs, which then writes x.
            first = self.launcher(results, f"trap 'echo 1 > {results}/unfinished.h5; exit 1' TERM\necho solving\nwhile true; do sleep 0.1; done")
            said = ""
            while "solving" not in said:
                line = first.stdout.readline()
                self.assertNotEqual(line, "", said)
                said += line
            self.assertIn(f"shardmat solve /matrices/bar.h5 {output}", said)
            first.send_signal(signal.SIGTERM)
            first.communicate()
            self.assertEqual(first.returncode, 1)
            # The second goes on from it, and so does a third if the second wrote nothing.
            for body, code in (("exit 9", 9), (f"cp {results}/start.h5 {results}/unfinished.h5", 0)):
                next_one = self.launcher(results, body)
                said, _ = next_one.communicate()
                self.assertEqual(next_one.returncode, code, said)
                self.assertIn(f"shardmat solve /matrices/bar.h5 --initial-guess {results}/start.h5 {output}", said)
            self.assertEqual(sorted(path.name for path in results.iterdir()), ["x.h5"])
            # Another job begins anew.
            said, _ = self.launcher(results, f"touch {results}/unfinished.h5").communicate()
            self.assertIn(f"shardmat solve /matrices/bar.h5 {output}", said)

    def test_a_launcher_is_started_again(self):
        [job] = manifests("solve.yaml")
        self.assertEqual(job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"], "OnFailure")
        self.assertGreater(job["spec"]["runPolicy"]["backoffLimit"], 0)


if __name__ == "__main__":
    unittest.main()
