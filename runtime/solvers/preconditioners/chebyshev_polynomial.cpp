// M = a polynomial of D·A, where D is the inverse of A's diagonal: a few steps of the Chebyshev iteration from 0, as in
// Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 12.3.2. The interval is [largest / 30, 1.1 · largest] of the
// spectrum.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/krylov/preconditioner_steps.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/solvers/loop/null_space.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/setting.h"
#include "runtime/solvers/loop/spectrum.h"

namespace shardmat {
namespace {

constexpr int kLanczosSteps = 16;
constexpr double kAbove = 1.1, kRatio = 30;

class ChebyshevPolynomial final : public Preconditioner {
 public:
  ChebyshevPolynomial(DistributedMatrix& matrix, const PreconditionerOptions& options)
      : matrix_(matrix), options_(options), degree_(options.degree), jacobi_(make_jacobi(matrix, options)) {
    Context& context = matrix.context();
    context.communicator().run_agreed([&] {
      constexpr int kMostDegree = 100;
      if (degree_ < 1 || degree_ > kMostDegree)
        throw Error(ErrorKind::usage, fmt::format("a polynomial of degree {}; it must be 1 to {}", degree_, kMostDegree),
                    "degree");
    });
    ProductOptions wanted = options.product;
    wanted.columns = options.columns;
    product_ = matrix.product(wanted);  // the method's product keeps its x
    product_->hold(options.held);
    context.communicator().run_agreed([&] {
      passes_.emplace(context.device(), options.columns);
      require_memory(context.device(), static_cast<std::int64_t>(2 * product_->y_bytes()), "the polynomial's vectors");
      q_ = Buffer(context.device(), product_->y_bytes());
      d_ = Buffer(context.device(), product_->y_bytes());
    });
    find_interval(context.stream());
  }

  void refresh(Stream& stream) override {
    jacobi_->refresh(stream);
    find_interval(stream);
  }

  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    dispatch(r.type, [&]<class Tag>(Tag) { apply_as<typename Tag::type>(r, z, stream); });
  }

  std::int64_t apply_bytes() const override {
    const auto vector = static_cast<std::int64_t>(product_->y_bytes());
    const std::int64_t first = 4 * vector + jacobi_->device_bytes(), later = 7 * vector + jacobi_->device_bytes();
    return first + degree_ * (product_->compulsory_bytes(0) + later);
  }
  std::int64_t device_bytes() const override {
    return jacobi_->device_bytes() + product_->device_bytes() + static_cast<std::int64_t>(q_.bytes() + d_.bytes());
  }
  std::string describe() const override {
    return fmt::format("degree {}, eigenvalues of D·A from {:.3g} to {:.3g}, {}", degree_, kAbove * largest_ / kRatio,
                       kAbove * largest_, product_->row_plans().front().kernel());
  }

 private:
  void find_interval(Stream& stream) {
    std::unique_ptr<Preconditioner> projected;
    if (options_.projector) projected = make_projected(make_jacobi(matrix_, options_), options_.projector);
    const Preconditioner& scaling = projected ? *projected : *jacobi_;
    largest_ = estimate_spectrum(*product_, scaling, kLanczosSteps, "preconditioner", stream).largest;
  }

  template <class T>
  void apply_as(const Dense& r, const Dense& z, Stream& stream) const {
    const double upper = kAbove * largest_, lower = upper / kRatio, theta = (upper + lower) / 2, delta = (upper - lower) / 2;
    krylov::ChebyshevStep<T> step{static_cast<const T*>(r.data),
                                  nullptr,
                                  static_cast<T*>(z.data),
                                  d_.as<T>(),
                                  static_cast<T*>(product_->x().data),
                                  static_cast<const T*>(jacobi_->diagonal()),
                                  static_cast<T>(1 / theta),
                                  T(0)};
    double rho = delta / theta;
    passes_->run(step, r.rows, stream);
    for (int i = 1; i <= degree_; ++i) {
      product_->multiply(1, 0, product_->y_view(q_.data()), stream);
      const double next = 1 / (2 * theta / delta - rho);
      step.q = q_.as<T>();
      step.a = static_cast<T>(2 * next / delta);
      step.b = static_cast<T>(next * rho);
      rho = next;
      passes_->run(step, r.rows, stream);
    }
  }

  DistributedMatrix& matrix_;
  PreconditionerOptions options_;
  int degree_;
  std::unique_ptr<Preconditioner> jacobi_;
  std::unique_ptr<Product> product_;
  std::optional<krylov::Passes> passes_;
  Buffer q_, d_;
  double largest_ = 1;
};

}  // namespace

std::unique_ptr<Preconditioner> make_chebyshev_polynomial(DistributedMatrix& matrix, const PreconditionerOptions& options) {
  return std::make_unique<ChebyshevPolynomial>(matrix, options);
}

std::vector<SolverSetting> chebyshev_polynomial_settings() {
  return {settings::count("degree", "products an application", 1, 100,
                          [](SolverOptions& o) -> int& { return o.preconditioning.degree; })};
}

}  // namespace shardmat
