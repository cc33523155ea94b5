// Newton's method: heat enters a plate on one edge and leaves the opposite one by radiation, 0.1 (T⁴ − 1). Steps solve
// J(T)·T_new = 0.3 T⁴ + 0.1 + q from T, whose residual is the first one. At last the changes of T by four other heats.
#include <shardmat/api.h>

#include <cmath>
#include <cstdio>

int main(int argc, char** argv) {
  const shardmat::MpiSession mpi(&argc, &argv);
  constexpr std::int64_t n = 40, rows = n * n, cases = 4;
  shardmat::Communicator ranks(MPI_COMM_WORLD);
  shardmat::Context context(ranks, shardmat::BackendChoice::automatic);
  const std::int64_t first = rows * ranks.rank() / ranks.size(), last = rows * (ranks.rank() + 1) / ranks.size();
  std::vector<std::int64_t> row_ptr{0}, columns;
  std::vector<double> conduction, radiates, by_cases;
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t x = i % n, y = i / n;
    for (const std::int64_t j : {i, i - n, i - 1, i + 1, i + n})  // in any order
      if (j >= 0 && j < rows && (j % n == x || j / n == y)) columns.push_back(j), conduction.push_back(-1);
    conduction[static_cast<std::size_t>(row_ptr.back())] = static_cast<double>(std::ssize(columns) - row_ptr.back() - 1);
    row_ptr.push_back(std::ssize(columns));
    radiates.push_back(x + 1 == n ? 0.1 : 0);
    for (std::int64_t k = 0; k < cases; ++k) by_cases.push_back(x == 0 && y / (n / cases) == k ? 1 : 0);
  }
  shardmat::HostVector<double> t(radiates.size(), 1.0), b(t), values;
  const auto linearise = [&](double load) {  // the values of J, and b
    values.assign(conduction.begin(), conduction.end());
    for (std::size_t i = 0; i < t.size(); ++i)
      values[static_cast<std::size_t>(row_ptr[i])] += 4 * radiates[i] * std::pow(t[i], 3),
          b[i] = radiates[i] * (3 * std::pow(t[i], 4) + 1) + 2 * load * by_cases[cases * i];
  };
  linearise(0);
  shardmat::DistributedMatrix jacobian(
      shardmat::take_rows({{first, last - first}, rows, row_ptr, columns, values.data()}, context), context,
      {.values = shardmat::Values::updatable});
  shardmat::SolverOptions options{.solver = "cg", .preconditioner = "jacobi", .rtol = 1e-13};
  shardmat::Solver solver(jacobian, options);
  const auto vector = [&](std::int64_t k) { return shardmat::DistributedVector(jacobian.y_rows(), jacobian.type(), k); };
  shardmat::DistributedVector x = vector(1), right = vector(1), changes = vector(cases), heats = vector(cases);
  x.set_own(t, context.stream());
  for (const double load : {0.5, 1.0})  // the second one begins with the T of the first
    for (std::int64_t step = 0, left = 1; left > 0 && step < 20; ++step) {
      double at[4] = {MPI_Wtime()};
      linearise(load), jacobian.update_values(values, context.stream()), at[1] = MPI_Wtime();
      solver.refresh(), at[2] = MPI_Wtime(), right.set_own(b, context.stream());
      const auto solved = solver.solve(right, x);
      t = x.own(context.stream()), left = solved.iterations, at[3] = MPI_Wtime();  // 0: T solves it
      if (ranks.rank() == 0)
        std::printf("load %.1f step %ld residual %.3e iterations %ld ms %.2f = values %.2f + refresh %.2f + solve %.2f\n",
                    load, step, solved.columns[0].history[0], solved.iterations, 1e3 * (at[3] - at[0]),
                    1e3 * (at[1] - at[0]), 1e3 * (at[2] - at[1]), 1e3 * (at[3] - at[2]));
    }
  options.columns = cases, heats.set_own(by_cases, context.stream());
  const bool converged = shardmat::Solver(jacobian, options).solve(heats, changes).converged();
  const auto all = x.gather(context.stream()), by_case = changes.gather(context.stream());
  if (ranks.rank() == 0)
    std::printf("corner %.10f far %.10f changes %.8f %.8f %.8f %.8f\n", all[0], all[rows - 1], by_case[0], by_case[1],
                by_case[2], by_case[3]);
  return converged ? 0 : 1;
}
