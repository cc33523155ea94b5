#include "runtime/solvers/loop/own_preconditioner.h"

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
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

}  // namespace

std::unique_ptr<Preconditioner> make_own_preconditioner(DistributedMatrix& matrix, const OwnPreconditioner& own,
                                                        std::int64_t columns, const HeldRows* held) {
  return std::make_unique<Own>(matrix, own, columns, held);
}

}  // namespace shardmat
