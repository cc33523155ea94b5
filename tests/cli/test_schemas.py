"""Every report is what its schema in tools/schemas says, and has no field that the schema does not describe."""

import csv
import functools
import json
import pathlib
import unittest

from support import PROGRAM, ROOT, CliTest

SCHEMAS = ROOT / "tools" / "schemas"
KEYWORDS = {"$schema", "$id", "$ref", "$defs", "title", "description", "type", "enum", "anyOf", "items", "properties",
            "required", "additionalProperties"}
WITHOUT_DOCTOR = {"info", "predict", "compare"}  # reports of commands that compute nothing on ranks
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}


def load(name):
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text())


def resolve(reference, root):
    """The schema that a $ref names, and the file it is in."""
    file, _, path = reference.partition("#")
    root = json.loads((SCHEMAS / file).read_text()) if file else root
    schema = root
    for word in filter(None, path.split("/")):
        schema = schema[word]
    return schema, root


def is_a(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))


def faults(value, schema, root, place="report"):
    """What in `value` is not as the schema says; knows the keywords above."""
    unknown = set(schema) - KEYWORDS
    if unknown:
        return [f"the schema uses {unknown} at {place}"]
    found = []
    if "$ref" in schema:
        found += faults(value, *resolve(schema["$ref"], root), place)
    if "anyOf" in schema:
        tried = [faults(value, choice, root, place) for choice in schema["anyOf"]]
        found += min(tried, key=len)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_a(value, name) for name in types):
        return found + [f"{place} is {value!r}, not {' or '.join(types)}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place} is {value!r}, not one of {schema['enum']}")
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{place} lacks {name}" for name in schema.get("required", []) if name not in value]
        for name, field in value.items():
            if name in known:
                found += faults(field, known[name], root, f"{place}.{name}")
            elif others is False:
                found.append(f"{place}.{name} is not described")
            elif isinstance(others, dict):
                found += faults(field, others, root, f"{place}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            found += faults(item, schema["items"], root, f"{place}[{i}]")
    return found


class Schemas(CliTest):
    def test_every_field_has_a_description_and_no_object_is_open(self):
        def walk(schema, root, place):
            self.assertLessEqual(set(schema), KEYWORDS, place)
            if "$ref" in schema:
                resolve(schema["$ref"], root)
            if "properties" in schema:
                others = schema["additionalProperties"]
                self.assertTrue(others is False or (place == "solve.schema.json.solver" and others["description"]), place)  # test_solve() looks at these
                self.assertLessEqual(set(schema["required"]), set(schema["properties"]), place)
            for name, field in schema.get("properties", {}).items():
                self.assertTrue(field.get("description"), f"{place}.{name}")
            for name in ("properties", "$defs"):
                for key, field in schema.get(name, {}).items():
                    walk(field, root, f"{place}.{key}")
            for field in (schema.get("items"), schema.get("additionalProperties")):
                if isinstance(field, dict):
                    walk(field, root, place + "[]")
            for choice in schema.get("anyOf", []):
                walk(choice, root, place)

        for path in sorted(SCHEMAS.glob("*.json")):
            with self.subTest(file=path.name):
                schema = json.loads(path.read_text())
                self.assertEqual(schema["$id"], path.name)
                walk(schema, schema, path.name)

    def test_the_checker_finds_faults(self):
        schema = load("multiply")
        report = self.json_of("multiply", "poisson:n=3", "--iterations", 0)
        self.assertEqual(faults(report, schema, schema), [])
        report["exchange"]["graph"] = 1
        report["exchange"]["new"] = 1
        del report["matrix"]["nnz"]
        report["backend"]["name"] = "gpu"
        self.assertEqual(len(faults(report, schema, schema)), 4)

    def check(self, name, *arguments, **options):
        """The report of a command against the schema of that name."""
        schema, report = load(name), self.json_of(*arguments, **options)
        self.assertEqual(faults(report, schema, schema)[:10], [], f"{name}: {' '.join(map(str, arguments))}")
        for one in report if isinstance(report, list) else [report]:
            self.assertEqual("doctor" in one["run"], name not in WITHOUT_DOCTOR, name)
        if name == "solve":  # fields that the schema does not list are options
            others = set(report["solver"]) - set(schema["properties"]["solver"]["properties"])
            self.assertEqual({other for other in others if f" --{other.replace('_', '-')} " not in self.help_of_solve()}, set())
        return report

    @functools.cache
    def help_of_solve(self):
        return self.succeed("solve", "--help-all").out

    def test_multiply(self):
        few = ["--backend", "host", "--iterations", 2]
        self.check("multiply", "multiply", "poisson:n=4", "--verify", "--output", "y.npy", *few, ranks=2)
        self.check("multiply", "multiply", "poisson:n=4", "--iterations", 0)
        self.check("multiply", "multiply", "poisson:n=4", "--verify=sampled", "--measure", "--tune-budget", 0.2, *few)
        self.check("multiply", "multiply", "poisson:n=4", "--rhs", 4, "--type", "f32", *few)
        for mode in ("dots", "power"):
            self.check("multiply", "multiply", "poisson:n=4", "--mode", mode, *few)
        self.check("multiply", "multiply", "poisson:n=4", "--transpose", "--verify", *few, ranks=2)

    def test_least_squares(self):
        for solver in ("lsqr", "cgls"):
            self.check("solve-least-squares", "solve", "poisson:n=4", "--solver", solver, "--output", "x.npy", "--force", "--backend", "host")

    def test_a_dry_run_foretells_memory(self):
        names = [("elasticity:n=18,uniform,clamp=0.05", "cg", "multigrid", 1), ("elasticity:n=18,clamp=0.05", "cg", "multigrid", 2),
                 ("poisson7:n=40", "cg", "multigrid", 1), ("poisson27:n=28", "minres", "block_jacobi", 2), ("poisson27:n=28,uniform", "cg", "multigrid", 1),
                 ("convection_diffusion:n=24", "fgmres", "jacobi", 1), ("convection_diffusion:n=24", "bicgstab", "none", 1)]
        for matrix, solver, preconditioner, ranks in names:
            with self.subTest(matrix=matrix, solver=solver, preconditioner=preconditioner, ranks=ranks):
                words = ["solve", matrix, "--solver", solver, "--preconditioner", preconditioner, "--backend", "host"]
                forecast = self.check("solve-dry-run", *words, "--dry-run", ranks=ranks)
                report = self.check("solve", *words, "--no-advice", "--max-iterations", 200, "--rtol", 1e-4, ranks=ranks)
                for key in ("rows", "nnz"):
                    self.assertEqual(forecast["matrix"][key], report["matrix"][key])
                self.assertEqual(forecast["ranks"]["most_nnz"], report["partition"]["nnz"]["max"])
                bytes_a_rank = forecast["estimated_bytes_a_rank"]
                for foretold, found in (("together", "device_bytes"), ("host_peak", "host_peak_bytes")):
                    ratio = bytes_a_rank[foretold] / report[found]["max"]
                    self.assertTrue(1 / 1.5 <= ratio <= 1.5, f"{foretold}: {bytes_a_rank[foretold]} foretold, {report[found]['max']} found")

    def test_a_dry_run_says_what_it_assumes(self):
        forecast = self.check("solve-dry-run", "solve", "poisson7:n=20", "--dry-run", "--backend", "host", "--output", "x.npy", ranks=3)
        self.assertEqual((forecast["solver"]["name"], forecast["solver"]["preconditioner"]), ("cg", "multigrid"))
        self.assertIn("assumed", forecast["solver"]["why"])
        self.assertFalse(self.path("x.npy").exists())
        direct = self.check("solve-dry-run", "solve", "poisson7:n=4", "--dry-run", "--solver", "direct")
        self.assertEqual((direct["solver"]["preconditioner"], direct["estimated_bytes_a_rank"]["preconditioner"]), ("direct", 0))
        few = self.check("solve-dry-run", "solve", "poisson7:n=4", "--dry-run")
        self.assertEqual(few["solver"]["preconditioner"], "block_jacobi")

    def test_every_report_says_what_made_it(self):
        run = self.check("solve", "solve", "poisson27:n=4", "--backend", "host", ranks=2, env={"OMP_NUM_THREADS": "3"})["run"]
        self.assertEqual((run["launcher"]["ranks"], run["threads"]), (2, 3))
        self.assertIn("solve poisson27:n=4 --backend host --json -", run["command"])
        self.assertRegex(run["date"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertTrue(run["host"] and run["version"] and run["cores"])
        self.assertEqual(self.check("info", "info", "poisson:n=3")["run"]["launcher"], {"name": "none", "ranks": 1})

    def test_version(self):
        schema = load("version")
        self.assertEqual(faults(json.loads(self.succeed("--version", "--json").out), schema, schema), [])

    def test_solve(self):
        self.check("solve", "solve", "poisson27:n=4", "--preconditioner", "block_jacobi", "--output", "x.npy", "--monitor-true-residual", ranks=2)
        self.check("solve", "solve", "poisson27:n=4", "--b", "zeros", "--rhs", 3, "--solver", "gmres")
        self.check("solve", "solve", "poisson27:n=4", "--solver", "chebyshev", "--preconditioner", "chebyshev", "--degree", 3)
        for inner, overlap in (("f64", 0), ("f32", 1)):
            factors = self.check("solve", "solve", "elasticity:n=4,clamp=0.3", "--preconditioner", "ic", "--inner", inner, "--factor-levels", 1,
                                 "--asm-overlap", overlap, ranks=2)["solver"]
            self.assertIn("IC(1) of blocks of 3, the rows of each rank", factors["preconditioner_note"])
            self.assertIn(f"type {inner}", factors["preconditioner_note"])
            self.assertEqual("and those next to them" in factors["preconditioner_note"], overlap == 1)
            self.assertEqual([factors[key] for key in ("factor_levels", "drop_tolerance", "factor_fill", "factor_order", "factor_sweeps",
                                                             "asm_overlap")], [1, 0, 2, "auto", 0, overlap])
        foretold = self.check("solve-dry-run", "solve", "elasticity:n=12,clamp=0.3", "--dry-run", "--preconditioner", "ic")
        self.assertGreater(foretold["estimated_bytes_a_rank"]["preconditioner"], 1_000_000)
        direct = self.check("solve", "solve", "poisson27:n=4", "--solver", "direct", ranks=2)["direct"]
        self.assertTrue(direct["library"].startswith("MUMPS ") and direct["nonzeros"] > 64 and direct["solves"] > 0)

    def test_reports_of_solves_tell_the_options(self):
        """Beside the fields that the schema lists, a report has options of the command, with what was given or the default."""
        for given in ({"solver": "gmres", "restart": 7, "gram_schmidt": "modified", "rtol": 0.25}, {"solver": "cg", "preconditioner": "chebyshev", "degree": 2},
                      {"solver": "minres", "preconditioner": "multigrid", "levels": 3, "cycle": "V", "assume_symmetric": True},
                      {"solver": "gmres", "preconditioner": "ilu", "factor_fill": 3, "drop_tolerance": 1e-3}):
            words = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in given.items()]
            told = self.check("solve", "solve", "poisson27:n=4", *words)["solver"]
            told["solver"] = told["name"]
            self.assertEqual({name: told[name] for name in given}, given)
            self.assertEqual((told["max_iterations"], told["null_space"], told["residual_norm"]), (10000, "auto", "unpreconditioned"))
            self.assertEqual(("restart" in told, "degree" in told), (told["name"] == "gmres", "degree" in given))

    def test_doctor(self):
        schema = load("doctor")
        for more, ranks in (((), 2), (("--quick",), 0)):
            report = json.loads(self.call("doctor", *more, "--json", "-", ranks=ranks).out)
            self.assertEqual(faults(report, schema, schema)[:10], [])
            self.assertEqual(len(report["facts"]), max(ranks, 1))
            self.assertEqual("load" in report["facts"][0], not more)

    def test_pagerank(self):
        self.check("pagerank", "pagerank", "rmat:scale=5", "--output", "p.npy", ranks=2)
        self.check("pagerank", "pagerank", "rmat:scale=5", "--seeds", "3,4", "--unweighted", "--type", "f32")

    def test_eigen(self):
        self.check("eigen", "eigen", "poisson:n=4", "--count", 2, "--which", "both", "--vectors", "v.npy", ranks=2)
        for more in (("--method", "lobpcg"), ("--shift", 0.3)):
            self.check("eigen", "eigen", "elasticity:n=4", "--mass", "mass:n=4", "--count", 7, "--vectors", "v.npy", *more, ranks=2)
        self.check("eigen", "eigen", "poisson:n=4", "--method", "power", "--tolerance", 1e-3, "--type", "f32")

    def test_several_matrices(self):
        for more in (["--verify"], ["--mode", "dots"], ["--mode", "power"], ["--batch", "whole"]):
            self.check("multiply-several", "multiply", "poisson:n=4", "random:n=50", *more, "--iterations", 2, ranks=2)

    def test_batch(self):
        self.check("batch", "batch", "batch:count=9,dim=4", "--verify", "--output", "y.npy", "--iterations", 2, ranks=2)
        self.check("batch", "batch", "batch:count=9,dim=4", "--stream", "--chunk", 1000, "--bias", "ones", "--relu")
        self.check("batch", "batch", "batch:count=9,dim=4", "--iterations", 0)

    def test_info(self):
        self.check("info", "info", "poisson:n=4", "--bandwidth", 10)
        self.check("info", "info", "poisson:n=4", "--quick")
        self.check("info", "info", "poisson:n=4", "--stream")
        for more in (["--sort", "local"], ["--reorder", "rcm"]):
            self.succeed("generate", "poisson", "--n", 4, "a.h5", "--parts", "2,3", *more)
            self.check("info", "info", "a.h5", "--bandwidth", 10)
        self.write("empty.mtx", "%%MatrixMarket matrix coordinate real general\n0 0 0\n")
        self.check("info", "info", "empty.mtx", "--bandwidth", 10)

    def test_scaling_and_predict(self):
        self.succeed("bench", "scaling", "poisson:n=4", "random:n={20}", "--exchange", "auto,allgather", "--iterations", 2, "--backend", "host",
                     "--json", "s.json", "--csv", "s.csv", ranks=2)
        schema, study = load("bench-scaling"), json.loads(self.path("s.json").read_text())
        self.assertEqual(faults(study, schema, schema)[:10], [])
        self.assertIn("doctor", study["run"])
        self.assertTrue(any("forecast" in case for case in study["cases"]))
        self.check("predict", "predict", "s.json", "--ranks", "1,2,8", "--network-latency", "5us", "--network-bandwidth", "25GB")

        self.check("predict", "predict", "s.json", "--ranks-per-host", 2, "--ranks", "1,2,8", "--network-latency", "5us", "--network-bandwidth", "25GB")
        self.check("compare", "compare", "s.json", "s.json")
        self.succeed("bench", "scaling", "poisson7:n=6", "--solve", "--repetitions", 1, "--settings", "max_iterations=30", "--preconditioner",
                     "auto,none", "--iterations", 2, "--backend", "host", "--json", "t.json", ranks=2, env={"SLURM_JOB_ID": "1"})
        solves = json.loads(self.path("t.json").read_text())
        self.assertEqual(faults(solves, schema, schema)[:10], [])
        self.assertEqual(len(solves["solves"]), 4)

        columns = load("bench-scaling.csv")
        with open(self.path("s.csv"), newline="") as file:
            lines = list(csv.DictReader(file))
        self.assertLessEqual(set(columns["required"]), set(lines[0]))
        self.assertLessEqual(set(lines[0]), set(columns["properties"]))
        for line in lines:
            for name, text in line.items():
                if text and columns["properties"][name]["type"] != "string":
                    line[name] = json.loads(text)
            line = {name: value for name, value in line.items() if value != ""}
            self.assertEqual([f for f in faults(line, columns, columns) if "lacks" not in f], [])

    def test_benchmarks(self):
        quick = ["--repetitions", 1, "--backend", "host", "--type"]
        self.check("bench-kernels", "bench", "kernels", "poisson7:n=4", *quick, "f64")
        self.check("bench-kernels", "bench", "kernels", "poisson7:n=4", "--kernel", "dia_host", "--budget", 1e-9, *quick, "f64")
        self.check("bench-spmm", "bench", "spmm", "poisson7:n=4", "--rhs", "2,4", *quick, "f32")
        self.check("bench-batched", "bench", "batched", "batch:count=3,dim=4", "--rhs", 8, "--cold", *quick, "f32")
        self.check("bench-features", "bench", "features", "batch:count=3,dim=4", "--in", 4, *quick, "f32")
        self.check("bench-papers", "bench", "papers", "poisson7:n=4", *quick, "f64")
        if (pathlib.Path(PROGRAM).parent / "shardmat-peers").exists():
            for bench, work in (("kernels", "elasticity:n=4"), ("batched", "batch:count=3,dim=4")):
                report = self.check("bench-peers", "bench", bench, work, "--peers", *quick, "f32")
                self.assertEqual(report["bench"], bench)
        self.check("bench-solve", "bench", "solve", "poisson7:n=5,uniform", "--repetitions", 1, "--backend", "host")
        self.check("bench-factors", "bench", "factors", "--size", "tiny", "--repetitions", 1, "--backend", "host")
        self.check("bench-io", "bench", "io", "--matrix", "poisson7:n=4", "--repetitions", 1)
        self.check("bench-shared-gpu", "bench", "shared-gpu", "--bytes", "1MB", "--repetitions", 1, "--idle", 0.1, ranks=2)


if __name__ == "__main__":
    unittest.main()
