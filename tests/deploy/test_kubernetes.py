#!/usr/bin/env python3
"""The manifests of deploy/kubernetes have the fields that Kubernetes knows, of their types, and no others: as the models of the
package python3-kubernetes say, which are made from the API's own description, and as the MPI operator's own schema says.
test_container.py runs the command lines."""

import copy
import json
import pathlib
import re
import sys
import unittest

try:
    import jsonschema
    import yaml
    from kubernetes import client
except ImportError as error:
    print(f"skipped: {error}: packages python3-jsonschema, python3-kubernetes, python3-yaml (deploy/install-dependencies.sh --tests)")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER, DATA = ROOT / "deploy" / "kubernetes", ROOT / "tests" / "data"
KINDS = {("v1", "Service"): client.V1Service, ("apps/v1", "StatefulSet"): client.V1StatefulSet}
SIMPLE = {"str": str, "int": int, "bool": bool, "object": object, "datetime": str}
# MPIJob v2beta1; a replica's template is Kubernetes' own.
MPI_JOB = {"launcherCreationPolicy": {"AtStartup", "WaitForWorkersReady"}, "sshAuthMountPath": str, "slotsPerWorker": int,
           "mpiImplementation": {"OpenMPI", "Intel", "MPICH"}, "runLauncherAsWorker": bool,
           "runPolicy": {"activeDeadlineSeconds": int, "backoffLimit": int, "cleanPodPolicy": {"None", "Running", "All"},
                         "suspend": bool, "ttlSecondsAfterFinished": int},
           "mpiReplicaSpecs": {role: {"replicas": int, "restartPolicy": {"Never", "OnFailure"}, "template": client.V1PodTemplateSpec}
                               for role in ("Launcher", "Worker")}}


def manifests(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def faults(value, kind, place):
    """Fields that are unknown, missing, or of another type, with their places."""
    if isinstance(kind, str) and (found := re.fullmatch(r"(list\[|dict\(str, )(\w+).", kind)):
        if not isinstance(value, list if found[1] == "list[" else dict):
            return [f"{place}: {value!r} is no {kind}"]
        items = enumerate(value) if isinstance(value, list) else value.items()
        return [fault for key, one in items for fault in faults(one, found[2], f"{place}.{key}")]
    kind = SIMPLE.get(kind) or getattr(client, kind) if isinstance(kind, str) else kind
    if isinstance(kind, set):
        return [] if value in kind else [f"{place}: {value!r} is none of {sorted(kind)}"]
    if isinstance(kind, dict):
        known, required = kind, []
    elif hasattr(kind, "openapi_types"):
        known = {kind.attribute_map[name]: of for name, of in kind.openapi_types.items()}
        required = [kind.attribute_map[name] for name in kind.openapi_types if is_required(kind, name)]
    else:
        return [] if isinstance(value, kind) and not (kind is int and isinstance(value, bool)) else [f"{place}: {value!r} is no {kind.__name__}"]
    if not isinstance(value, dict):
        return [f"{place}: {value!r} is no object"]
    found = [f"{place}: there is no {name}" for name in value if name not in known]
    found += [f"{place}: {name} is missing" for name in required if name not in value]
    return found + [fault for name in value if name in known for fault in faults(value[name], known[name], f"{place}.{name}")]


def is_required(kind, name):
    """The models refuse None for what is required."""
    try:
        instance = kind.__new__(kind)
        instance.local_vars_configuration = client.Configuration()
        setattr(instance, name, None)
        return False
    except ValueError:
        return True


def faults_of(manifest):
    if manifest["kind"] == "MPIJob":
        outer = {"apiVersion": {"kubeflow.org/v2beta1"}, "kind": {"MPIJob"}, "metadata": client.V1ObjectMeta, "spec": MPI_JOB}
        return faults(manifest, outer, "MPIJob")
    return faults(manifest, KINDS[manifest["apiVersion"], manifest["kind"]], manifest["kind"])


def close(schema):
    """Fields that the schema does not name are mistakes."""
    if isinstance(schema, list):
        for one in schema:
            close(one)
    if isinstance(schema, dict):
        if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema.setdefault("additionalProperties", False)
        if schema.get("x-kubernetes-int-or-string"):
            schema.pop("type", None)
        for one in schema.values():
            close(one)


class Manifests(unittest.TestCase):
    def test_fields(self):
        kinds = []
        for path in sorted(FOLDER.glob("*.yaml")):
            for manifest in manifests(path.name):
                kinds.append(manifest["kind"])
                self.assertEqual(faults_of(manifest), [], path)
        self.assertEqual(kinds, ["Service", "StatefulSet", "MPIJob"])

    def test_mistakes_are_found(self):
        _, service = manifests("serve.yaml")
        [job] = manifests("solve.yaml")
        container = ("spec", "template", "spec", "containers", 0)
        worker = ("spec", "mpiReplicaSpecs", "Worker", "template", "spec", "containers", 0)
        for manifest, place, name, value, says in (
                (service, container, "lifenessProbe", {}, "there is no lifenessProbe"),
                (service, (*container, "livenessProbe"), "periodSeconds", "10", "'10' is no int"),
                (service, (*container, "livenessProbe", "httpGet"), "port", None, "port is missing"),
                (service, container, "command", "shardmat", "is no list"),
                (service, container, "name", None, "name is missing"),
                (service, (*container, "securityContext", "capabilities"), "drop", [1], "1 is no str"),
                (job, ("spec",), "slotPerWorker", 4, "there is no slotPerWorker"),
                (job, ("spec", "runPolicy"), "cleanPodPolicy", "running", "is none of"),
                (job, worker, "image", 7, "7 is no str"),
                (job, (*worker, "resources", "limits"), "cpu", 32, "32 is no str")):
            wrong = copy.deepcopy(manifest)
            there = wrong
            for step in place:
                there = there[step]
            if value is None:
                del there[name]
            else:
                there[name] = value
            with self.subTest(says):
                self.assertEqual(len(faults_of(wrong)), 1, faults_of(wrong))
                self.assertIn(says, faults_of(wrong)[0])

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

    def test_the_schema_of_the_mpi_operator(self):
        schema = json.loads((DATA / "kubernetes" / "mpijob-v2beta1.json").read_text())
        close(schema)
        schema["properties"]["metadata"] = {"type": "object"}
        [job] = manifests("solve.yaml")
        self.assertEqual([error.message for error in jsonschema.Draft7Validator(schema).iter_errors(job)], [])
        job["spec"]["slotPerWorker"] = 4
        self.assertEqual(len(list(jsonschema.Draft7Validator(schema).iter_errors(job))), 1)


if __name__ == "__main__":
    unittest.main()
