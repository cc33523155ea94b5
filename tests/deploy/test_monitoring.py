#!/usr/bin/env python3
"""The alerts and the dashboard of deploy/monitoring: Prometheus reads what the service tells and the rules, each alert fires
when it should, and every figure that they name is one that a service at work has."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

try:
    import yaml
except ImportError as error:
    print(f"skipped: {error}: package python3-yaml (deploy/install-dependencies.sh --tests)")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from support import CliTest  # noqa: E402
from test_serve import ServiceTest  # noqa: E402
from test_serve_door import LISTEN, has_tls, make_certificate  # noqa: E402
from test_serve_observe import figures  # noqa: E402

FOLDER = ROOT / "deploy" / "monitoring"
RULES = FOLDER / "shardmat.rules.yml"
DASHBOARD = json.loads((FOLDER / "grafana.json").read_text())
ALERTS = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
OF_PROMETHEUS = {"up": {"job", "instance"}}  # figures that it makes itself
OF_TARGET = {"job", "instance"}              # labels that it adds
WORDS = {"and", "or", "unless", "bool"}

# What makes each alert fire, and what does not: values of series at 0, 1, 2 … minutes, as promtool writes them; both are of one
# service, and the others of the list lie there, too.
STEADY = "x30"
FIRES = {
    "ShardmatDown": ({'up{job="shardmat"}': f"0{STEADY}"}, {'up{job="shardmat"}': f"1{STEADY}"}),
    "ShardmatNotReady": ({"shardmat_ready": f"0{STEADY}"}, {"shardmat_ready": f"1{STEADY}"}),
    "ShardmatRankLost": ({"shardmat_rank_lost_total": "0x22 1x8"}, {"shardmat_rank_lost_total": "0x10 1x20"}),
    "ShardmatRestarting": ({"shardmat_restarts_total": "0x22 1 2 3 4x5"}, {"shardmat_restarts_total": "0x22 1x8"}),
    "ShardmatQueueFull": ({'shardmat_rejected_total{reason="busy"}': "0+3x30", 'shardmat_rejected_total{reason="too_many_jobs"}': "0+3x30",
                           'shardmat_requests_total{op="multiply"}': "0+100x30"},
                          {'shardmat_rejected_total{reason="busy"}': "0+4x30", 'shardmat_requests_total{op="multiply"}': "0+40x30",
                           'shardmat_requests_total{op="batches"}': "0+30x30", 'shardmat_requests_total{op="pagerank"}': "0+30x30"}),
    "ShardmatConnectionsRefused": ({'shardmat_rejected_total{reason="too_many_connections"}': "0+1x30"},
                                   {'shardmat_rejected_total{reason="too_many_connections"}': "0+1x10 10x20"}),
    "ShardmatConnectionsNearlyFull": ({'shardmat_open_connections{door="unix"}': f"50{STEADY}", 'shardmat_open_connections{door="address"}': f"45{STEADY}",
                                       "shardmat_max_connections": f"100{STEADY}"},
                                      {'shardmat_open_connections{door="unix"}': f"50{STEADY}", 'shardmat_open_connections{door="health"}': f"45{STEADY}",
                                       "shardmat_max_connections": f"100{STEADY}"}),
    "ShardmatSlow": ({f'shardmat_request_seconds_bucket{{op="multiply",le="{le}"}}': f"0+{step}x30" for le, step in (("1", 98), ("2.5", 100), ("+Inf", 100))},
                     {f'shardmat_request_seconds_bucket{{op="multiply",le="{le}"}}': f"0+{step}x30" for le, step in (("1", 100), ("2.5", 100), ("+Inf", 100))}),
    "ShardmatMatrixFailed": ({'shardmat_matrices{state="failed"}': f"1{STEADY}"},
                             {'shardmat_matrices{state="failed"}': f"0{STEADY}", 'shardmat_matrices{state="ready"}': f"1{STEADY}"}),
    "ShardmatCertificateExpires": ({"shardmat_certificate_expiry_timestamp_seconds": f"{14 * 86400}{STEADY}"},
                                   {"shardmat_certificate_expiry_timestamp_seconds": f"{14 * 86400 + 3600}{STEADY}"}),
    "ShardmatStateUnsaved": ({"shardmat_state_saved": f"0{STEADY}"}, {"shardmat_state_saved": f"1{STEADY}"}),
    "ShardmatLogLinesLost": ({'shardmat_log_lines_lost_total{log="service"}': "0x22 5x8"}, {'shardmat_log_lines_lost_total{log="service"}': f"5{STEADY}"}),
    "ShardmatDeviceMemoryNearlyFull": ({'shardmat_device_held_bytes{kind="matrices",rank="0"}': f"80{STEADY}",
                                        'shardmat_device_held_bytes{kind="vectors",rank="0"}': f"15{STEADY}", 'shardmat_device_memory_bytes{rank="0"}': f"100{STEADY}"},
                                       {'shardmat_device_held_bytes{kind="matrices",rank="0"}': f"80{STEADY}",
                                        'shardmat_device_held_bytes{kind="matrices",rank="1"}': f"80{STEADY}", 'shardmat_device_memory_bytes{rank="0"}': f"100{STEADY}"}),
    "ShardmatArenaNearlyFull": ({'shardmat_arena_bytes{kind="used"}': f"95{STEADY}", 'shardmat_arena_bytes{kind="all"}': f"100{STEADY}"},
                                {'shardmat_arena_bytes{kind="used"}': f"50{STEADY}", 'shardmat_arena_bytes{kind="all"}': f"100{STEADY}"}),
}


def promtool(*words, **more):
    result = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, **more)
    return result.returncode, result.stdout + result.stderr


def needs_promtool(test):
    return unittest.skipUnless(shutil.which("promtool"), "promtool is missing: package prometheus (deploy/install-dependencies.sh --deploy)")(test)


def names_in(expression):
    """[(name of a figure, labels that are asked of it)] in PromQL."""
    found, strings = [], re.compile(r'"(?:[^"\\]|\\.)*"')
    text = re.sub(r"\[[^\]]*\]", "", strings.sub('""', expression))
    text = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", "", text)
    for match in re.finditer(r"([A-Za-z_:][\w:]*)\s*(\(|\{[^}]*\})?", text):
        if match[1] in WORDS or match[2] == "(" or re.match(r"[\d.]", text[match.start() - 1:match.start()] or " "):
            continue
        found.append((match[1], set(re.findall(r"(\w+)\s*[=!]", match[2] or ""))))
    return found


def expressions():
    """{where: PromQL} of all alerts, panels and variables."""
    found = {alert["alert"]: alert["expr"] for alert in ALERTS}
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            found[f"{panel['title']}, {target['refId']}"] = target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            found[f"variable {variable['name']}"] = re.fullmatch(r"label_values\((.*), \w+\)", variable["definition"])[1]
    return found


class Names(unittest.TestCase):
    def test_names_are_found_in_promql(self):
        self.assertEqual(names_in('sum by (le) (rate(a_b{x="}(c",y!~"d|e"}[5m])) / on (z) f - time() > 1e3'), [("a_b", {"x", "y"}), ("f", set())])


class Figures(ServiceTest):
    def live(self):
        """What /metrics of a service with a matrix and a job says."""
        options = ["--ranks", 2]
        if has_tls():
            make_certificate(self.directory, "one")
            options += [*LISTEN, "--tls-certificate", self.path("one.pem"), "--tls-key", self.path("one.key")]
        service = self.start(*options)
        self.loaded(service, solvable=True)
        self.assertEqual(service.multiply("bar", self.vector(1)[0]).status, 200)
        solved = service.ask("POST", "/v1/matrices/bar/solve?wait=60&limit=60&preconditioner=jacobi", self.vector(2)[0].tobytes(),
                             Content_Type="application/octet-stream")
        self.assertIn(solved.status, (200, 202), solved)
        vector = service.ask("POST", "/v1/vectors", json.dumps({"matrix": "bar"}))
        self.assertEqual(vector.status, 201, vector)
        return service.get("/metrics").body.decode()

    def test_every_figure_of_the_alerts_and_the_dashboard_is_there(self):
        text = self.live()
        labels = {name: set(of) for name, of in OF_PROMETHEUS.items()}
        for name, pairs in figures(text):
            labels.setdefault(name, set(OF_TARGET)).update(label for label, _ in pairs)
        if not has_tls():
            labels["shardmat_certificate_expiry_timestamp_seconds"] = set(OF_TARGET)
        for where, expression in expressions().items():
            with self.subTest(where=where):
                names = names_in(expression)
                self.assertTrue(names, expression)
                for name, asked in names:
                    self.assertTrue(name in labels, f"the service tells no {name}")
                    self.assertLessEqual(asked, labels[name], name)
        if shutil.which("promtool"):
            self.assertEqual(promtool("check", "metrics", input=text), (0, ""))
        else:
            print("without promtool: package prometheus is missing")


class Dashboard(unittest.TestCase):
    def test_panels_lie_apart_and_have_a_source(self):
        taken = set()
        for panel in DASHBOARD["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells
            for target in panel["targets"]:
                self.assertEqual(target["datasource"], {"type": "prometheus", "uid": "${datasource}"})
        self.assertEqual(len({panel["id"] for panel in DASHBOARD["panels"]}), len(DASHBOARD["panels"]))


class Rules(CliTest):
    def test_each_alert_has_a_case(self):
        self.assertEqual(sorted(FIRES), sorted(alert["alert"] for alert in ALERTS))

    @needs_promtool
    def test_prometheus_reads_them(self):
        code, said = promtool("check", "rules", RULES)
        self.assertEqual(code, 0, said)
        self.assertIn(f"{len(ALERTS)} rules found", said)
        code, said = promtool("check", "config", "--syntax-only", FOLDER / "prometheus.yml")
        self.assertEqual(code, 0, said)

    @needs_promtool
    def test_each_alert_fires_when_it_should(self):
        def series(all):
            return [{"series": name, "values": values} for name, values in all.items()]

        for alert, (firing, quiet) in FIRES.items():
            for all, count in ((firing, 1), (quiet, 0)):
                with self.subTest(alert=alert, firing=count):
                    counted = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
                    self.write("tests.yml", yaml.safe_dump({
                        "rule_files": [str(RULES)], "evaluation_interval": "1m",
                        "tests": [{"interval": "1m", "input_series": series(all),
                                   "promql_expr_test": [{"expr": counted, "eval_time": "25m", "exp_samples": [{"labels": "{}", "value": count}]}]}]}))
                    code, said = promtool("test", "rules", self.path("tests.yml"))
                    self.assertEqual(code, 0, said)


if __name__ == "__main__":
    unittest.main()
