// A program with its own MPI and its own matrix, through the installed package only: it assembles a mesh of triangles, hands
// in its rows, multiplies three vectors, then four at once, puts in new values and multiplies again; then all of it once
// more with rows that the library spreads over the ranks. Each result is compared with a product of the mesh's own triplets.
#include <mpi.h>
#include <shardmat/api.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using Row = std::map<std::int64_t, double>;

/// Squares cut into two triangles each, with nodes numbered as a code that inserts them in any order would: the matrix of
/// linear elements for -div(a grad u) + u, assembled triangle by triangle.
class Mesh {
 public:
  explicit Mesh(int edge) : edge_(edge), rows_(static_cast<std::size_t>(nodes())) {}

  std::int64_t nodes() const { return std::int64_t{edge_} * edge_; }
  /// `coefficient`: a of a triangle with this number.
  template <class F>
  void assemble(const F& coefficient) {
    for (Row& row : rows_) row.clear();
    std::int64_t triangle = 0;
    for (int i = 0; i + 1 < edge_; ++i)
      for (int j = 0; j + 1 < edge_; ++j) {
        add({node(i, j), node(i + 1, j), node(i, j + 1)}, coefficient(triangle++));
        add({node(i + 1, j + 1), node(i, j + 1), node(i + 1, j)}, coefficient(triangle++));
      }
  }
  const Row& row(std::int64_t i) const { return rows_[static_cast<std::size_t>(i)]; }

 private:
  std::int64_t node(int i, int j) const { return (std::int64_t{i} * edge_ + j) * 7919 % nodes(); }
  /// The corner with the right angle comes first.
  void add(const std::vector<std::int64_t>& corners, double a) {
    const double stiffness[3][3] = {{1, -0.5, -0.5}, {-0.5, 0.5, 0}, {-0.5, 0, 0.5}};
    for (std::size_t r = 0; r < 3; ++r)
      for (std::size_t c = 0; c < 3; ++c)
        rows_[static_cast<std::size_t>(corners[r])][corners[c]] += a * stiffness[r][c] + (r == c ? 2.0 : 1.0) / 24;
  }

  int edge_;
  std::vector<Row> rows_;
};

/// The rows that this rank owns, as CSR.
struct OwnCsr {
  shardmat::RowRange range;
  std::vector<std::int64_t> row_ptr{0}, columns;
  std::vector<double> values;

  OwnCsr(const Mesh& mesh, shardmat::RowRange of) : range(of) {
    for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
      for (const auto& [column, value] : mesh.row(i)) columns.push_back(column), values.push_back(value);
      row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
  }
};

double x_at(std::int64_t i, int vector) { return std::sin(0.1 * static_cast<double>(i) + vector); }

/// Largest error of this rank's rows, relative to the sum of the magnitudes.
double error_of(const Mesh& mesh, shardmat::RowRange range, const shardmat::HostVector<double>& y, int columns, int first) {
  double worst = 0;
  for (std::int64_t i = 0; i < range.count; ++i)
    for (int j = 0; j < columns; ++j) {
      double sum = 0, absolute = 0;
      for (const auto& [column, value] : mesh.row(range.first + i)) {
        sum += value * x_at(column, first + j);
        absolute += std::abs(value * x_at(column, first + j));
      }
      worst = std::fmax(worst, std::abs(y[static_cast<std::size_t>(i * columns + j)] - sum) / absolute);
    }
  return worst;
}

/// A·x for columns first … first + columns - 1 of X.
double multiply(shardmat::DistributedMatrix& matrix, const Mesh& mesh, shardmat::RowRange range, int columns, int first) {
  shardmat::Stream& stream = matrix.context().stream();
  const auto product = matrix.product(columns);
  shardmat::DistributedVector x(matrix, shardmat::VectorLayout::columns, matrix.type(), columns),
      y(matrix, shardmat::VectorLayout::rows, matrix.type(), columns);
  std::vector<double> mine;
  for (std::int64_t i = 0; i < range.count; ++i)
    for (int j = 0; j < columns; ++j) mine.push_back(x_at(range.first + i, first + j));
  x.set_own(mine, stream);
  product->multiply(1, x.view(), 0, y.view(), stream);
  product->wait(stream);
  return error_of(mesh, range, y.own(stream), columns, first);
}

/// The largest error of five products. `method`: how the rows are spread anew; empty: they stay where they are.
double multiply_all(shardmat::Context& context, const char* method) {
  shardmat::Communicator& ranks = context.communicator();
  Mesh mesh(61);
  mesh.assemble([](std::int64_t triangle) { return 1 + static_cast<double>(triangle % 5); });
  // The last rank owns the first rows, and each one more than the one before.
  const std::int64_t size = ranks.size(), rank = ranks.rank(), shares = size * (size + 1) / 2;
  const auto from = [&](std::int64_t r) { return mesh.nodes() - mesh.nodes() * (r * (r + 1) / 2) / shares; };
  const shardmat::RowRange range{from(rank + 1), from(rank) - from(rank + 1)};

  const OwnCsr own(mesh, range);
  shardmat::MatrixOptions options;
  options.values = shardmat::Values::updatable;
  shardmat::DistributedMatrix matrix(shardmat::take_rows({range, mesh.nodes(), own.row_ptr, own.columns, own.values.data()},
                                                         context, shardmat::ValueType::f64, method),
                                     context, options);
  double worst = 0;
  for (int vector = 0; vector < 3; ++vector) worst = std::fmax(worst, multiply(matrix, mesh, range, 1, vector));
  worst = std::fmax(worst, multiply(matrix, mesh, range, 4, 3));

  mesh.assemble([](std::int64_t triangle) { return 2 + static_cast<double>(triangle % 3); });
  const OwnCsr changed(mesh, range);
  matrix.update_values(changed.values, context.stream());
  worst = std::fmax(worst, multiply(matrix, mesh, range, 4, 0));
  return ranks.all_reduce(worst, shardmat::Reduction::max);
}

int run() {
  shardmat::Communicator ranks(MPI_COMM_WORLD);
  shardmat::Context context(ranks, shardmat::BackendChoice::automatic);
  const double worst = std::fmax(multiply_all(context, ""), multiply_all(context, "nnz"));
  if (ranks.rank() == 0)
    std::printf("ten products on %d ranks, five of them with rows spread anew: largest relative error %.1e\n", ranks.size(),
                worst);
  return worst < 1e-14 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int exit_code = 1;
  try {
    exit_code = run();
  } catch (const shardmat::Error& error) {  // the same on all ranks
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::fprintf(stderr, "consumer: %s\n", error.what());
    exit_code = error.exit_code();
  }
  MPI_Finalize();
  return exit_code;
}
