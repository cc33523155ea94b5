"""batch: products of many small matrices, from every kind of source, compared with SciPy."""

import json
import unittest

import numpy as np
import scipy.io
import scipy.sparse as sp

from support import INPUT, RESOURCES, USAGE, CliTest, file_size_limit, read_vector, write_vector


def read_batch(path):
    """The matrices of a batch file, by h5py and SciPy alone."""
    import h5py
    with h5py.File(path, "r") as file:
        first_row, first_col = file["first_row"][()], file["first_column"][()]
        pointers, indices, values = (file[name][()] for name in ("pointers_to_1", "indices_1", "values"))
    matrices = []
    for rows, cols in zip(zip(first_row, first_row[1:]), zip(first_col, first_col[1:])):
        own = pointers[rows[0]:rows[1] + 1]
        matrices.append(sp.csr_matrix((values[own[0]:own[-1]], indices[own[0]:own[-1]], own - own[0]),
                                      shape=(rows[1] - rows[0], cols[1] - cols[0])))
    return matrices


class Batch(CliTest):
    def graphs(self):
        """Three graphs of 3, 1 and 4 nodes as a TUDataset, and their matrices."""
        edges = [(1, 2), (2, 1), (2, 3), (3, 2), (5, 6), (6, 5), (7, 8), (8, 7), (5, 8), (8, 5)]
        self.path("TOY").mkdir()
        self.write("TOY/TOY_A.txt", "".join(f"{i}, {j}\n" for i, j in edges))
        self.write("TOY/TOY_graph_indicator.txt", "1\n1\n1\n2\n3\n3\n3\n3\n")
        whole = sp.lil_matrix((8, 8))
        for i, j in edges:
            whole[i - 1, j - 1] = 1
        whole = whole.tocsr()
        return [whole[b:e, b:e] for b, e in ((0, 3), (3, 4), (4, 8))]

    def multiply(self, source, matrices, *options, rhs=3, ranks=0, product=lambda a, x: a @ x, alpha=1):
        x = np.random.default_rng(5).uniform(-1, 1, (sum(a.shape[1] for a in matrices), rhs))
        write_vector(self.path("x.npy"), x)
        self.succeed("batch", source, "--rhs", rhs, "--type", "f64", "--x", "x.npy", "--output", "y.h5", "--verify",
                     "--iterations", 1, *options, ranks=ranks)
        starts = np.cumsum([0] + [a.shape[1] for a in matrices])
        expected = np.concatenate([product(a, x[b:e]) for a, b, e in zip(matrices, starts, starts[1:])])
        np.testing.assert_allclose(read_vector(self.path("y.h5")).reshape(expected.shape), alpha * expected, rtol=1e-12, atol=1e-13)

    def test_graphs_as_scipy_multiplies_them(self):
        matrices = self.graphs()
        self.multiply("TOY", matrices)
        self.multiply("TOY", matrices, "--stream", "--chunk", "1KB", ranks=2)
        self.multiply("TOY", matrices, "--format", "coo", "--alpha", -2, rhs=1, alpha=-2)
        self.multiply("TOY", matrices, "--relu", product=lambda a, x: np.maximum(a @ x, 0))

        def normalised(a, x):
            loops = a + sp.identity(a.shape[0])
            scale = sp.diags(1 / np.sqrt(np.asarray(loops.sum(axis=1)).ravel()))
            return scale @ loops @ scale @ x
        self.multiply("TOY", matrices, "--gcn-normalize", product=normalised)

    def test_weights_of_edges(self):
        matrices = self.graphs()
        weights = np.arange(1, 11) / 4
        lines = self.path("TOY/TOY_A.txt").read_text().split("\n")[:10] + ["6, 6"]  # a loop with a weight
        weights = np.append(weights, 0.75)
        self.write("TOY/TOY_A.txt", "\n".join(lines))
        np.savetxt(self.path("TOY/TOY_edge_attributes.txt"), weights)
        ends = np.array([[int(word) - 1 for word in line.split(",")] for line in lines])
        whole = sp.csr_matrix((weights, ends.T), shape=(8, 8))
        weighted = [whole[b:e, b:e] for b, e in ((0, 3), (3, 4), (4, 8))]

        def normalised(a, x):
            """Kipf and Welling's D^-1/2 (A + I) D^-1/2 x."""
            loops = a + sp.identity(a.shape[0])
            scale = sp.diags(1 / np.sqrt(np.asarray(loops.sum(axis=1)).ravel()))
            return scale @ loops @ scale @ x
        self.multiply("TOY", weighted)
        self.multiply("TOY", weighted, "--gcn-normalise", ranks=2, product=normalised)
        self.multiply("TOY", [(a != 0).astype(float) for a in weighted], "--unweighted")

        np.savetxt(self.path("TOY/TOY_edge_attributes.txt"), np.column_stack([weights * 0, weights]), delimiter=", ")
        self.fail_on_every_rank(INPUT, "batch", "TOY", says=("TOY_edge_attributes.txt:1", "--edge-attribute"))
        self.multiply("TOY", weighted, "--edge-attribute", 2)
        self.fail_with(USAGE, "batch", "TOY", "--edge-attribute", 2, "--unweighted", says="--unweighted")
        self.fail_with(USAGE, "batch", "TOY", "--gcn-normalise", "--self-loops", says="--self-loops")
        self.fail_with(USAGE, "batch", "molecules:count=3", "--unweighted", says="--unweighted")

        graphs = dict(graph_ptr=[0, 3, 4, 8], indptr=whole.indptr,
                      indices=whole.indices - np.repeat([0, 4], [whole.indptr[3], whole.nnz - whole.indptr[3]]))
        np.savez(self.path("toy.npz"), **graphs, values=whole.data)
        self.multiply("toy.npz", weighted)
        self.multiply("toy.npz", weighted, "--gcn-normalise", product=normalised)

    def test_saved_batches_are_read_by_h5py_and_again(self):
        self.succeed("batch", "batch:count=20,dim=1-9,row_nnz=1-3,seed=4", "--save", "b.h5", "--type", "f64", "--iterations", 0)
        matrices = read_batch(self.path("b.h5"))
        self.assertEqual(len(matrices), 20)
        self.assertTrue(all(1 <= a.shape[0] <= 9 for a in matrices))
        self.multiply("b.h5", matrices, ranks=3)
        self.multiply("b.h5", matrices, "--transpose", product=lambda a, x: a.T @ x)

    def test_folders_of_matrix_market_files(self):
        self.path("many").mkdir()
        matrices = [sp.random(n, n + 2, 0.4, random_state=n, format="csr") for n in (3, 11, 2)]
        for number, matrix in zip((2, 10, 1), matrices):
            scipy.io.mmwrite(str(self.path(f"many/m{number}.mtx")), matrix, precision=17)
        self.multiply("many", [matrices[2], matrices[0], matrices[1]])

    def test_report(self):
        report = self.json_of("batch", "molecules:count=50,seed=2", "--rhs", 4, "--iterations", 3)
        self.assertEqual((report["batch"]["matrices"], report["operation"]["right_hand_sides"]), (50, 4))
        self.assertGreater(report["product"]["median_s"], 0)
        self.assertEqual(report["kernel"]["name"], "csr_host")
        text = self.succeed("batch", "molecules:count=50,seed=2", "--stream", "--verify").out
        for word in ("50, 9 …", "chunks through", "verification   passed"):
            self.assertIn(word, text)

    def test_wrong_input_is_named(self):
        self.graphs()
        self.write("TOY/TOY_A.txt", "1, 2\n2, 9\n")
        self.fail_with(INPUT, "batch", "TOY", says=("TOY_A.txt", "2"))
        self.fail_with(INPUT, "batch", "nowhere", says="nowhere")
        self.fail_with(USAGE, "batch", "batch:count=3,dims=4", says="dim")
        self.fail_with(USAGE, "batch", "molecules:count=3", "--kernel", "csr_hots", says="csr_host")
        self.fail_with(USAGE, "batch", "molecules:count=3", "--chunk", "many", says="--chunk")
        np.save(self.path("x.npy"), np.ones((7, 2)))
        self.fail_with(INPUT, "batch", "molecules:count=3", "--x", "x.npy", "--rhs", 2, says="x.npy")
        self.fail_on_every_rank(INPUT, "batch", "TOY", says="TOY_A.txt")
        self.fail_on_every_rank(INPUT, "batch", "molecules:count=3", "--x", "x.npy", "--rhs", 2, says="x.npy")

    def test_results_spare_what_they_are_made_from(self):
        self.succeed("batch", "molecules:count=20", "--save", "m.h5", "--iterations", 0)
        for name in ("--output", "--save"):
            self.fail_with(USAGE, "batch", "m.h5", name, "m.h5", says="m.h5 is the batch itself")
        self.fail_with(USAGE, "batch", "m.h5", "--json", "m.h5", says="m.h5 is the name of a matrix")
        self.fail_with(USAGE, "batch", "molecules:count=3", "--save", "y.h5", "--output", "y.h5", says="named for two results")
        self.fail_with(USAGE, "batch", "molecules:count=3", "--save", "y.npy", says=".h5")
        self.fail_with(USAGE, "batch", "molecules:count=3", "--chunk", 0, says="--chunk")
        self.fail_with(USAGE, "batch", "molecules:count=3", "--save", "b.h5", "--alpha", 0, says="--alpha")

    def test_ranks_with_less_wait_for_those_with_more(self):
        self.outlast_the_deadline("batch", "batch:count=1,dim=30000,row_nnz=20", "--rhs", 64, "--verify", "--iterations", 0,
                                  slow_bytes=8_000_000)

    def test_full_disk_leaves_nothing(self):
        result = self.call("batch", "molecules:count=20000", "--rhs", 64, "--output", "y.npy", "--iterations", 0,
                           preexec_fn=file_size_limit(20_000_000))
        self.assertEqual(result.code, RESOURCES, result)
        self.assertEqual(self.files(), [], result)
        result = self.call("batch", "molecules:count=60000", "--save", "b.h5", preexec_fn=file_size_limit(20_000_000))
        self.assertEqual(result.code, RESOURCES, result)
        self.assertEqual(self.files(), [], result)


if __name__ == "__main__":
    unittest.main()
