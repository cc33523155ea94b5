"""Every summary of `bench papers`, formed again from the rows of the same report."""

import math

import numpy as np

THREADS = (1, 2, 4, 8, 16, 32)
FORMATS = "csr csc coo ell ell_r hyb jds jds_t dia bcsr pkt".split()
ORDERS = {"CRS": "crs_us", "sorted CRS": "sorted_us", "Fold": "fold_us"}


def pearson(points):
    if len(points) < 3:
        return None
    x, y = np.array(points, float).T
    if x.std() < 1e-6 or y.std() < 1e-6:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def group_of(row):
    line = 32 if row["type"] == "f32" else 16
    return "stream" if row["locality_fold"] >= 0.75 * line else "scattered" if row["locality_fold"] < 2 else "related"


def speed(row, key):
    return 2e-3 * row["nnz"] / row[key]


class Summaries:
    """check(tables) compares; a test case gives `test`."""

    def __init__(self, test):
        self.test = test

    def near(self, found, wanted, what):
        if wanted is None or found is None:
            self.test.assertEqual(found, wanted, what)
        else:
            self.test.assertTrue(math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9), (what, found, wanted))

    def check(self, tables):
        for name, table in tables.items():
            check = getattr(self, name, None)
            if check is not None:
                for row in table["rows"]:
                    check(row, tables)

    def paper_1_ratios(self, row, tables):
        (of,) = [line for line in tables["paper_1"]["rows"] if (line["figure"], line["columns"]) == (row["figure"], row["columns"])]
        largest = lambda *keys: max((of[key] for key in keys if of[key] is not None), default=None)
        over = lambda ours, others: ours / others if ours and others else None
        swa, others = largest("swa_st", "swa_csr"), largest("tensorflow", "cusparse")
        self.near(row["over_others"], over(swa, others), "over_others")
        self.near(row["over_tensorflow"], over(swa, of["tensorflow"]), "over_tensorflow")
        self.near(row["over_cublas"], over(swa, of["cublas"]), "over_cublas")
        self.near(row["ours_over_others"], over(of["auto"], others), "ours_over_others")
        printed = {("6a", 64): (9.27, 1.26), ("6b", 512): (6.09, 1.43), ("8", 1024): (3.29, None)}
        self.test.assertEqual((row["paper_over_others"], row["paper_over_cublas"]), printed.get((row["figure"], row["columns"]), (None, None)))

    def paper_1_sm(self, row, _):
        printed = {"TensorFlow, a launch a product": 0.3551, "batched SWA, SparseTensor": 0.8907, "batched SWA, CSR": 0.8787}
        self.test.assertEqual(row["paper"], printed[row["kernel"]])

    def paper_2(self, row, _):
        measured = {name: row[name] for name in FORMATS if isinstance(row.get(name), float)}
        self.test.assertEqual(row["fastest"], max(measured, key=measured.get), row)

    def paper_3(self, row, tables):
        of = {line["order"]: line for line in tables["paper_3_threads"]["rows"]
              if (line["source"], line["type"]) == (row["source"], row["type"])}
        for order, best, seconds, loss in (("as they are", "best", "best_us", "loss"),
                                           ("sorted", "sorted_best", "sorted_us", "sorted_loss")):
            times = {n: of[order][f"us_{n}"] for n in THREADS}
            self.near(row[seconds], min(times.values()), seconds)
            self.test.assertEqual(times[row[best]], row[seconds])
            self.near(row[loss], times[of[order]["formula"]] / min(times.values()) - 1, loss)
        self.near(row["formula_us"], of["as they are"][f"us_{row['formula']}"], "formula_us")
        self.near(row["sorting"], row["best_us"] / row["sorted_us"], "sorting")

    def paper_4(self, row, _):
        self.near(row["one_line_hit_rate"], 1 - 1 / row["locality"], "one_line_hit_rate")

    def paper_4_rows(self, row, tables):
        lines = [line for line in tables["paper_4"]["rows"] if line["type"] == row["type"]]
        self.test.assertEqual(row["matrices"], len(lines))
        self.near(row["model"], pearson([(line["rows"], line["l1_crs"]) for line in lines]), "rows and hits")
        counted = [(line["rows"], line["ncu_crs"]) for line in lines if line["ncu_crs"] is not None]
        self.near(row["ncu"], pearson(counted), "rows and counted hits")
        self.test.assertEqual(row["paper"], -0.67 if row["type"] == "f32" else None)

    def paper_4_groups(self, row, tables):
        lines = [line for line in tables["paper_4"]["rows"] if line["type"] == row["type"]]
        if row["group"] != "all":
            lines = [line for line in lines if group_of(line) == row["group"].split()[0]]
        self.test.assertEqual(row["matrices"], len(lines), row)
        end, locality = ("crs", "locality") if row["order"] == "CRS" else ("fold", "locality_fold")
        self.near(row["model"], pearson([(line[locality], line[f"l1_{end}"]) for line in lines]), row)
        counted = [(line[locality], line[f"ncu_{end}"]) for line in lines if line[f"ncu_{end}"] is not None]
        self.near(row["ncu"], pearson(counted), row)
        self.near(row["speed"], pearson([(line[locality], speed(line, f"{end}_us")) for line in lines if line[f"{end}_us"]]), row)

    def paper_4_advice(self, row, tables):
        losses, fits = [], 0
        for line in tables["paper_4"]["rows"]:
            if line["type"] != row["type"] or not all(line[key] for key in ORDERS.values()):
                continue
            small = line["rows"] * (4 if line["type"] == "f32" else 8) <= 256 << 10  # of square matrices, on the host
            fits += small
            advised = "CRS" if small and row["by"] != "locality" else line["advised"]
            losses.append(line[ORDERS[advised]] / min(line[key] for key in ORDERS.values()) - 1)
        self.test.assertEqual((row["matrices"], row["fits"]), (len(losses), fits))
        self.test.assertEqual((row["fastest"], row["near"]), (sum(x == 0 for x in losses), sum(x <= 0.05 for x in losses)))
        self.near(row["mean_loss"], float(np.mean(losses)), "mean_loss")
        self.near(row["worst_loss"], max(losses), "worst_loss")

    def paper_5_means(self, row, tables):
        lines = [line for line in tables["paper_5_formats"]["rows"] if (line["type"], line["format"]) == (row["type"], row["format"])]
        self.test.assertEqual(row["refused"], sum(line["speed_up"] is None for line in lines))
        for what, best in (("memory", min), ("speed_up", max)):
            known = {line["matrix"]: line[what] for line in lines if line[what] is not None}
            if what == "speed_up":
                self.test.assertEqual(row["matrices"], len(lines))
            if not known:
                self.near(row[f"mean_{what}"], None, what)
                continue
            self.near(row[f"mean_{what}"], float(np.mean(list(known.values()))), f"mean_{what}")
            self.near(row[f"best_{what}"], best(known.values()), f"best_{what}")
            self.test.assertEqual(known[row[f"best_{what}_of"]], row[f"best_{what}"])

    def paper_3_ranks(self, row, tables):
        if isinstance(row["best_nt"], str):
            return
        for order, best, seconds in (("as they are", "best_nt", "as_is_us"), ("sorted", "sorted_best_nt", "sorted_best_us")):
            (of,) = [line for line in tables["paper_3_ranks_threads"]["rows"] if line["rank"] == "all" and line["order"] == order
                     and all(line[key] == row[key] for key in ("source", "type", "ranks"))]
            self.near(row[seconds], min(of[f"us_{n}"] for n in THREADS), seconds)
            self.near(row[seconds], of[f"us_{row[best]}"], best)
        (single,) = [line for line in tables["paper_3_ranks"]["rows"] if line["ranks"] == 1
                     and all(line[key] == row[key] for key in ("source", "type"))]
        self.near(row["as_is_gain"], single["as_is_us"] / row["as_is_us"], "as_is_gain")
        self.near(row["sorted_gain"], single["as_is_us"] / row["sorted_us"], "sorted_gain")

    def paper_5_published(self, row, tables):
        lines = [line for line in tables["paper_5_published"]["rows"] if line["matrix"] != "mean"]
        self.test.assertEqual(len(lines), 15)
        if row["matrix"] == "mean":
            self.near(row["memory"], float(np.mean([line["memory"] for line in lines])), "mean memory")
            self.near(row["memory_r"], float(np.mean([line["memory_r"] for line in lines])), "mean memory of ELL-R")
            self.test.assertEqual((row["paper_memory"], row["paper_memory_r"]), (-0.162, -0.162))
            self.test.assertAlmostEqual(row["memory"], -0.162, delta=0.002)
            return
        self.test.assertEqual(row["ell_bytes"], 12 * row["n"] * row["k"])
        self.near(row["memory"], row["rbp_ell_bytes"] / row["ell_bytes"] - 1, "memory")
        self.near(row["memory_r"], (row["rbp_ell_bytes"] + 4 * row["n"]) / (row["ell_bytes"] + 4 * row["n"]) - 1, "memory_r")
        for key in ("memory", "memory_r"):
            if row[f"paper_{key}"] is not None:
                self.test.assertAlmostEqual(row[key], row[f"paper_{key}"], delta=0.0006)

    def paper_5_gmres_means(self, row, tables):
        rows = tables["paper_5_gmres"]["rows"]
        backend = "cuda" if any(line["backend"] == "cuda" for line in rows) else "host"
        lines = [line for line in rows if (line["backend"], line["format"]) == (backend, row["format"]) and line["whole_ms"] is not None]
        mean = lambda values: float(np.mean(values)) if values else None
        gains = [line["gain"] for line in lines if line["gain"] is not None]
        self.test.assertEqual(row["matrices"], len(gains))
        self.near(row["gain"], mean(gains), "gain")
        moved = [line for line in lines if line["transfer_ms"] > 0]
        self.near(row["transfer_share"], mean([line["transfer_ms"] / line["whole_ms"] for line in moved]), "transfer_share")
        usual = {line["matrix"]: line["transfer_ms"] for line in rows if line["transfer_ms"]
                 and (line["backend"], f"rbp_{line['format']}") == (backend, row["format"])}
        saved = [1 - line["transfer_ms"] / usual[line["matrix"]] for line in moved if line["matrix"] in usual]
        self.near(row["transfer_saved"], mean(saved), "transfer_saved")
        self.near(row["best_transfer_saved"], max(saved, default=None), "best_transfer_saved")
        self.near(row["over_host"], mean([line["over_host"] for line in lines if line["over_host"] is not None]), "over_host")
        printed = {"csr": (None, None, None, 14.9), "rbp_csr": (0.066, 0.136, 0.136, 27.0), "ell": (None, None, None, 122.1),
                   "rbp_ell": (0.041, 0.131, 0.258, 70.3), "ell_r": (None, None, None, 56.7), "rbp_ell_r": (0.035, 0.134, 0.266, 67.7)}
        self.test.assertEqual(tuple(row[f"paper_{key}"] for key in ("gain", "transfer_saved", "best_transfer_saved", "over_host")),
                              printed[row["format"]])

    def paper_5_gmres(self, row, tables):
        self.near(row["whole_ms"], row["convert_ms"] + row["transfer_ms"] + row["products_ms"] + row["rest_ms"], "whole_ms")
        usual = next((line for line in tables["paper_5_gmres"]["rows"] if (line["matrix"], line["backend"], line["format"])
                      == (row["matrix"], row["backend"], row["format"].removeprefix("rbp_"))), None)
        packed = row["format"].startswith("rbp_") and usual and usual["whole_ms"] and row["whole_ms"]
        self.near(row["gain"], 1 - row["whole_ms"] / usual["whole_ms"] if packed else None, "gain")
