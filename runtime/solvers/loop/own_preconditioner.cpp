#include "runtime/solvers/loop/preconditioner.h"

#include <memory>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/held_rows.h"

namespace shardmat {
namespace {

class Own final : public Preconditioner {
 public:
  Own(DistributedMatrix& matrix, const OwnPreconditioner& own, std::int64_t columns, const HeldRows* held)
      : matrix_(matrix), own_(own), held_(held) {
    ranks().run_agreed([&] {
      if (!own_.apply)
        throw Error(ErrorKind::usage, "a preconditioner of the program needs the function apply", "own_preconditioner");
      if (own_.set_up) own_.set_up(matrix_, columns, matrix_.context().stream());
    });
  }

  void refresh(Stream& stream) override {
    ranks().run_agreed([&] {
      if (own_.refresh) own_.refresh(stream);
    });
  }
  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    if (own_.capturable) own_.apply(r, z, stream);
    else ranks().run_agreed([&] { own_.apply(r, z, stream); });
    if (held_ != nullptr) held_->clear(z, stream);
  }
  std::int64_t device_bytes() const override { return 0; }  // the program's memory is not counted
  std::string describe() const override { return "of the program"; }

 private:
  Communicator& ranks() const { return matrix_.context().communicator(); }

  DistributedMatrix& matrix_;
  OwnPreconditioner own_;
  const HeldRows* held_;
};

/// Brings r to the program, and z back.
class HostSide {
 public:
  HostSide(const DistributedMatrix& matrix, std::int64_t columns,
           const std::function<void(const ConstDense&, const Dense&)>& apply)
      : apply_(apply),
        matrix_(matrix),
        device_(matrix, VectorLayout::rows, sum_type(matrix.type()), columns),
        r_(static_cast<std::size_t>(device_.own_rows() * columns) * size_of(device_.type())),
        z_(r_.size()) {}

  void operator()(const ConstDense& r, const Dense& z, Stream& stream) {
    if (device_.map()->in_source_order() && device_.map()->route() == nullptr && r.device.backend == Backend::host)
      return apply_(r, z);
    const std::size_t bytes = static_cast<std::size_t>(r.rows * r.columns) * size_of(r.type);
    copy_on_device(device_.view().data, r.data, bytes, stream);
    device_.own(of_program(r_), stream);
    const auto work = [&] { apply_(of_program(r_), of_program(z_)); };
    if (device_.map()->route() == nullptr) work();
    else matrix_.context().communicator().run_agreed(work);  // set_own() waits for other ranks
    device_.set_own(ConstDense(of_program(z_)), stream);
    copy_on_device(z.data, device_.view().data, bytes, stream);
  }

 private:
  Dense of_program(HostVector<char>& memory) const {
    const std::int64_t columns = device_.columns();
    return {memory.data(), device_.own_rows(), columns, columns, DenseOrder::row_major, device_.type(), Device{}};
  }

  std::function<void(const ConstDense&, const Dense&)> apply_;
  const DistributedMatrix& matrix_;
  DistributedVector device_;
  HostVector<char> r_, z_;
};

}  // namespace

OwnPreconditioner host_preconditioner(std::function<void(const ConstDense& r, const Dense& z)> apply) {
  OwnPreconditioner made;
  const auto side = std::make_shared<std::unique_ptr<HostSide>>();
  made.set_up = [side, apply = std::move(apply)](DistributedMatrix& matrix, std::int64_t columns, Stream&) {
    *side = std::make_unique<HostSide>(matrix, columns, apply);
  };
  made.apply = [side](const ConstDense& r, const Dense& z, Stream& stream) { (**side)(r, z, stream); };
  return made;
}

std::unique_ptr<Preconditioner> make_own_preconditioner(DistributedMatrix& matrix, const OwnPreconditioner& own,
                                                        std::int64_t columns, const HeldRows* held) {
  return std::make_unique<Own>(matrix, own, columns, held);
}

}  // namespace shardmat
