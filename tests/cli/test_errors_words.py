"""The words of a command line: misspelt options, numbers out of range and names of other programs."""

import unittest

from support import INPUT, RESOURCES, USAGE, CliTest, DATA

HEADER = "%%MatrixMarket matrix coordinate real general\n"
SMALL = HEADER + "2 2 2\n1 1 1.5\n2 2 2.5\n"


class OtherNames(CliTest):
    def test_options_of_other_programs(self):
        for command, option, meant in (("solve", "--algorithm", "--solver"), ("solve", "--tol", "--rtol"), ("eigen", "--tol", "--tolerance"),
                                       ("solve", "--ksp_type", "--solver"), ("solve", "--maxiter", "--max-iterations"),
                                       ("eigen", "--nev", "--count"), ("eigen", "--solver", "--method")):
            self.fail_with(USAGE, command, "poisson:n=3", option, "1", says=[f"no option {option}", f"did you mean {meant}?"])
        self.fail_with(USAGE, "solve", "poisson:n=3", "--method", "gmres", says=["how rows are divided", "(--solver gmres)"])


class Words(CliTest):
    def test_unknown_options_with_the_nearest(self):
        for arguments, says in ((["multiply", "a.h5", "--itertions", 3], "--iterations"), (["partition", "--part=3", "a", "b.h5"], "--parts"),
                                (["generate", "poisson", "--sede", 3, "o.h5"], "--seed"), (["info", "a.h5", "--jsn"], "--json")):
            self.fail_with(USAGE, *arguments, says=[f"did you mean {says}?", f"shardmat {arguments[0]}", "--help"])
        self.fail_on_every_rank(USAGE, "multiply", "a.h5", "--itertions", 3, says="--iterations")

    def test_unknown_subcommands_with_the_nearest(self):
        self.fail_with(USAGE, "partitoin", "a.mtx", "o.h5", says=["partitoin", "did you mean partition?"])
        self.fail_with(USAGE, "generate", "elastisity", "--n", 3, "o.h5", says=["elastisity", "did you mean elasticity?"])
        self.fail_with(USAGE, "generate", "zzz", "o.h5", says=["zzz", "elasticity", "rmat"])

    def test_unknown_generators_and_parameters(self):
        self.fail_on_every_rank(USAGE, "multiply", "elastcity:n=3", says="did you mean elasticity?")
        self.fail_on_every_rank(USAGE, "multiply", "elasticity:sede=3", says="did you mean seed?")
        self.fail_with(USAGE, "multiply", "elasticity:n=3,n=4", says="twice")

    def test_misspelt_variable(self):
        self.fail_on_every_rank(USAGE, "multiply", "poisson:n=3", "--backend", "host", env={"SHARDMAT_ISA": "sse9"},
                                says=["SHARDMAT_ISA=sse9", "choose baseline, avx2 or avx512"])
        least = self.json_of("multiply", "poisson:n=3", "--backend", "host", ranks=2, env={"SHARDMAT_ISA": "baseline"})
        self.assertEqual([rank["device"].split(", ")[-1] for rank in least["ranks"]], ["baseline"] * 2)
        self.fail_on_every_rank(USAGE, "multiply", "poisson:n=3", env={"SHARDMAT_HDF5_LINK": "follow"},
                                says=["SHARDMAT_HDF5_LINK ", "did you mean SHARDMAT_HDF5_LINKS?"])

    def test_numbers_out_of_range(self):
        for option, value, says in (("--iterations", -3, "whole number from 0"), ("--iterations", "1e6", "whole number"),
                                    ("--iterations", "99999999999999999999", "whole number"), ("--timeout", 0, "greater than 0"),
                                    ("--timeout", "inf", "greater than 0"), ("--alpha", "abc", "finite number"), ("--beta", "nan", "finite number"),
                                    ("--seed", -1, "whole number from 0")):
            self.fail_with(USAGE, "multiply", "poisson:n=3", option, value, says=[option, says, f'"{value}"'])
        for parts in ("0", "-1", "a", "3000000000", "2,0", "2.5"):
            self.fail_with(USAGE, "generate", "poisson", "--n", 3, "o.h5", "--parts", parts, says=["--parts", "whole number from 1"])

    def test_options_given_twice(self):
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--iterations", 3, "--iterations", 4, says="--iterations was given more than once")

    def test_lists_with_empty_items(self):
        for parts in ("2,,3", "2,", ",2"):
            for given in (["--parts", parts], [f"--parts={parts}"]):
                self.fail_with(USAGE, "partition", "poisson:n=3", "o.h5", *given, says=["--parts", "empty item", f'"{parts}"'])

    def test_choices_are_listed(self):
        for option, known in (("--kernel", "csr"), ("--exchange", "allgather"), ("--method", "nnz"), ("--type", "f64"),
                              ("--mode", "power"), ("--backend", "cuda"), ("--sort", "local")):
            self.fail_with(USAGE, "multiply", "poisson:n=3", option, "zzz", says=["zzz", known])
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--verify=zzz", says=["zzz", "sampled"])

    def test_option_in_place_of_a_file_name(self):
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--output", "--verify", says="--verify")
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--json", "", says="--json")

    def test_commands_of_one_process_refuse_mpirun(self):
        self.write("bar.mtx", SMALL)
        self.fail_on_every_rank(USAGE, "partition", "bar.mtx", "o.h5", says=["partition", "without mpirun"])

    def test_the_option_behind_a_message_is_the_commands(self):
        self.write("nan.mtx", HEADER + "1 1 1\n1 1 nan\n")
        power = ["poisson:n=3", "--mode", "power"]
        for arguments, end in (
                (["multiply", "nan.mtx"], "accept values that are not finite (--allow-nonfinite)"),
                (["bench", "kernels", "nan.mtx", "--backend", "host"], "accept values that are not finite"),  # it has no such option
                (["multiply", "poisson:n=3", "--policy", "lanes=4"], "name the kernel (--kernel)"),
                (["multiply", "poisson:n=3", "--kernel", "csr_host", "--policy", "lanes"], "(--policy)"),
                (["multiply", "poisson:n=3", "--rhs", 4, "--measure"], "(--measure)"),
                (["multiply", "poisson:n=3", "--rhs", 4, "--verify=sampled"], "(--verify)"),
                (["multiply", "poisson:n=3", "--column-block", 2], "(--rhs)"),
                (["multiply", "poisson:n=3", "--rhs", 4, "--column-block", 3], "choose 2 or 4 (--column-block)"),
                (["multiply", *power, "--rhs", 2], "(--rhs)"), (["multiply", *power, "--beta", 2], "(--beta)"),
                (["multiply", *power, "--iterations", 0], "(--iterations)"),
                (["batch", "molecules:count=3", "--policy", "columns=64"], "name the kernel (--kernel)"),
                (["partition", DATA / "stokes.mtx.gz", "o.h5", "--reorder", "graph"], "(--parts)")):
            with self.subTest(arguments=arguments):
                code = INPUT if "nan.mtx" in arguments else USAGE
                self.assertTrue(self.fail_with(code, *arguments).messages[0].endswith(end), end)
                if arguments[0] in ("multiply", "batch"):  # the message travels between the ranks with its setting
                    self.fail_on_every_rank(code, *arguments, ranks=2, says=end)

    def test_cuda_without_a_gpu(self):
        result = self.call("multiply", "poisson:n=3", "--backend", "cuda")
        if result.code == 0:
            self.skipTest("this machine has a GPU")
        self.fail_on_every_rank(RESOURCES, "multiply", "poisson:n=3", "--backend", "cuda", says=["no CUDA device", "on the host backend (--backend)"])


if __name__ == "__main__":
    unittest.main()
