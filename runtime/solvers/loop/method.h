// A Krylov method: what it does in one iteration. The loop, the tolerances and the true residual are the Solver's.
//
// To add one: see runtime/solvers/README.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/krylov/monitor.h"
#include "kernels/krylov/step.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/exact_residual.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/solve_result.h"
#include "runtime/solvers/loop/solver_options.h"
#include "runtime/solvers/loop/spectrum.h"

namespace shardmat {

struct SolverSetting;

/// What is known of the x that a method starts from.
enum class Guess { zero, any };

/// What a method works with; all of it outlives the method.
struct MethodInputs {
  const Product& product;
  const Preconditioner& preconditioner;
  krylov::Passes& passes;
  krylov::Monitor monitor;
  /// As given to the Solver. Decided already: `restart` is at most the number of rows, `variant` is not automatic.
  SolverOptions options;
  const ExactResidual* exact;  ///< what a residual at the start is computed by, while it is ready

  const DistributedMatrix& matrix() const { return product.matrix(); }
  Context& context() const;
  std::int64_t rows() const;  ///< of this rank
  int columns() const { return passes.columns(); }
  ValueType type() const;
  /// A view of a vector of this rank's rows, row-major.
  Dense view(void* vector) const { return product.y_view(vector); }
  /// r = b − A·x for start(); without a product if x is zero. Overwrites the product's x(). May wait.
  void residual(const void* b, const void* x, Guess guess, void* r, Stream& stream) const;
  /// The same by a product in any case, in stream order.
  void residual_by_product(const void* b, const void* x, void* r, Stream& stream) const;
  /// z = M·r, in stream order.
  void precondition(void* r, void* z, Stream& stream) const { preconditioner.apply(view(r), view(z), stream); }
  /// Runs a step over this rank's rows.
  template <class Step>
  void run(const Step& step, Stream& stream) const {
    passes.run(step, rows(), stream);
  }
  /// Runs a step that only changes scalars.
  template <class Step>
  void run_scalars(const Step& step, Stream& stream) const {
    passes.run(step, 0, stream);
  }
  std::size_t vector_bytes() const { return product.y_bytes(); }
  /// Of passes that read and write so many vectors, and so many diagonals of a preconditioner.
  double pass_bytes(double vectors, double diagonals = 0) const {
    return (vectors + diagonals / columns()) * static_cast<double>(vector_bytes());
  }
};

/// What an iteration takes on this rank, on average.
struct IterationCosts {
  double products = 1;          ///< of the method; those of a preconditioner are its own
  double sums = 0;              ///< over the ranks, in launches of their own
  double preconditionings = 0;  ///< applications; 0 where passes over vectors multiply by a diagonal
  double vector_bytes = 0;      ///< that passes over vectors read and write at least
};

/// Threads: one thread at a time uses a method. All functions are collective and in stream order, and none but the
/// constructor, refresh() and start() waits. Vectors hold this rank's rows, row-major, in the order of
/// DistributedMatrix::y_rows().
class Method {
 public:
  virtual ~Method() = default;
  /// A solve begins: spectra() and renew() know nothing of those before.
  virtual void begin() {}
  /// Looks at the matrix and the preconditioner again, after new values. Waits.
  virtual void refresh(Stream&) {}
  /// Takes b and x; all later calls mean these. Computes the residual of x. Begins anew from there.
  virtual void start(const void* b, void* x, Guess guess, Stream& stream) = 0;
  /// Squares of the norms that start() found, one f64 a column in device memory.
  virtual const double* squares() const = 0;
  /// rᵀ·M·r of that start, likewise; null if the method has none. A start() that forms no M·r takes the share that rᵀ·M·r
  /// has in the square of the norm from the last iteration.
  virtual const double* natural_squares() const { return nullptr; }
  /// After a breakdown: the next start() takes other vectors than those before. False if the method has none.
  virtual bool renew([[maybe_unused]] Stream& stream) { return false; }
  /// Of each column: the least and the largest singular value of what the method made of M·A; nothing where notes in the
  /// monitor tell it, or nothing does. Waits.
  virtual std::vector<std::optional<Spectrum>> spectra(Stream&) const { return {}; }
  /// Iterations that belong together: at most 32, or `restart` of the options.
  virtual std::int64_t cycle() const { return 1; }
  /// Iteration `i` of a cycle, from 0. Columns that are done stay as they are.
  virtual void iterate(std::int64_t i, Stream& stream) = 0;
  /// Adds to `x`, a copy of x, what the first `taken` iterations of the cycle found: nothing where iterate() updates x.
  virtual void add_correction([[maybe_unused]] std::int64_t taken, [[maybe_unused]] void* x, Stream&) {}
  /// Ends a cycle after its first `taken` iterations: x is up to date after it.
  virtual void finish_cycle([[maybe_unused]] std::int64_t taken, Stream&) {}
  /// Of the first `iterations` iterations after start(), the products, sums and passes of start() aside.
  virtual IterationCosts costs(std::int64_t iterations) const = 0;
  /// Device memory of the method, without b, x and the product's.
  virtual std::int64_t device_bytes() const = 0;
};

/// What a matrix must be for a method; positive_definite: symmetric, too.
enum class Demands { nothing, symmetric, positive_definite };

/// One entry of the list of methods.
struct MethodEntry {
  std::string_view name, help;
  Demands demands;
  /// Its own vectors, at most, for a forecast of memory: so many, and those of its basis.
  std::int64_t vectors;
  std::int64_t (*basis)(const SolverOptions& options, std::int64_t rows) = nullptr;
  /// Norms of the residual that the method has without a pass of its own.
  std::span<const ResidualNorm> norms;
  bool flexible = false;  ///< the preconditioner may change from one iteration to the next
  Coefficients coefficients = Coefficients::none;
  bool variants = false;              ///< it has those of CgVariant
  bool factors_first = false;         ///< of the preconditioners for matrices that are not symmetric, auto tries ilu first
  std::string_view preconditioner{};  ///< the only one that it takes; empty: any
  /// Checks memory before it is taken. Collective; the same error on all ranks.
  std::unique_ptr<Method> (*make)(const MethodInputs& inputs);
  /// Options of its own (setting.h); null: none, or another entry brings them. Those that name no users are of this method
  /// alone.
  std::vector<SolverSetting> (*settings)() = nullptr;
};
std::span<const MethodEntry> methods();

/// Throws Error(usage) with the nearest name if no method has this one.
const MethodEntry& find_method(std::string_view name);

std::unique_ptr<Method> make_single_reduction_cg(const MethodInputs& inputs);  // by make_cg()

}  // namespace shardmat
