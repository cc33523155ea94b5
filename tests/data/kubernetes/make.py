"""make.py SWAGGER.JSON: writes kubernetes-v1.20.json beside this file, from what Debian's sources of kubernetes have:

    apt-get source --download-only kubernetes && tar xzf kubernetes_*.orig.tar.gz
    make.py kubernetes-1.20.2/api/openapi-spec/swagger.json
"""

import json
import pathlib
import sys

KINDS = ("io.k8s.api.core.v1.Service", "io.k8s.api.apps.v1.StatefulSet")
COMMENT = ("Service and StatefulSet with all that they refer to, from the OpenAPI description of Kubernetes 1.20.2 (github.com/kubernetes/kubernetes, "
           "api/openapi-spec/swagger.json), the descriptions and remarks for programs left out. Copyright The Kubernetes Authors, Apache License 2.0 "
           "(LICENSE at the root of these sources has its text).")


def references(schema):
    for key, value in schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ():
        if key == "$ref":
            yield value.rpartition("/")[2]
        else:
            yield from references(value)


def bare(schema, is_field=False):
    """Without descriptions. `is_field`: the keys are names of fields, which may be "description", too."""
    if not isinstance(schema, dict):
        return schema
    return {key: bare(value, key == "properties" and not is_field) for key, value in schema.items()
            if is_field or (key != "description" and not key.startswith("x-kubernetes-"))}


definitions = json.loads(pathlib.Path(sys.argv[1]).read_text())["definitions"]
needed, found = list(KINDS), {}
while needed:
    if (name := needed.pop()) not in found:
        found[name] = bare(definitions[name])
        needed += references(definitions[name])
schema = {"$comment": COMMENT, "definitions": dict(sorted(found.items()))}
pathlib.Path(__file__).with_name("kubernetes-v1.20.json").write_text(json.dumps(schema, separators=(",", ":")) + "\n")
