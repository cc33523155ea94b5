// librsb: recursive sparse blocks, tuned for the product as its manual advises; full and symmetric.
#include <rsb.h>

#include <algorithm>
#include <vector>

#include "tools/bench/peers/blocks.h"
#include "tools/bench/peers/peer.h"

namespace shardmat::peers {
namespace {

/// Time to tune in: some hundred products, at most 10 s.
double tuning_seconds(const Operands& a) { return std::clamp(2e-7 * a.nnz() * a.columns(), 0.05, 10.0); }

void check(rsb_err_t code, const char* what) {
  if (code == RSB_ERR_NO_ERROR) return;
  char text[256] = {};
  rsb_strerror_r(code, text, sizeof text);
  throw Refused(std::string("librsb: ") + what + ": " + text);
}

template <class T>
class RsbPeer : public Peer {
 public:
  RsbPeer(const Operands& a, bool symmetric) : operands_(a), x_(copy_of(a.x<T>())), y_(a.y<T>().size()) {
    check(rsb_lib_init(RSB_NULL_INIT_OPTIONS), "rsb_lib_init");
    const Triangle<T> lower = symmetric ? triangle_of<T>(a, false) : Triangle<T>();
    const int* row_ptr = symmetric ? lower.row_ptr.data() : a.row_ptr().data();
    const int* col_idx = symmetric ? lower.col_idx.data() : a.col_idx().data();
    const T* values = symmetric ? lower.values.data() : a.values<T>().data();
    const rsb_flags_t flags = symmetric ? RSB_FLAG_LOWER_SYMMETRIC : RSB_FLAG_NOFLAGS;
    rsb_err_t error = RSB_ERR_NO_ERROR;
    matrix_ = rsb_mtx_alloc_from_csr_const(values, row_ptr, col_idx, row_ptr[a.rows()],
                                           sizeof(T) == 8 ? RSB_NUMERICAL_TYPE_DOUBLE : RSB_NUMERICAL_TYPE_FLOAT, a.rows(),
                                           a.cols(), RSB_DEFAULT_BLOCKING, RSB_DEFAULT_BLOCKING, flags, &error);
    check(error, "rsb_mtx_alloc_from_csr_const");
    rsb_real_t speed_up = 1;
    const T one = 1, zero = 0;
    check(rsb_tune_spmm(&matrix_, &speed_up, nullptr, 0, tuning_seconds(a), RSB_TRANSPOSITION_N, &one, nullptr, a.columns(),
                        order(), x_.data(), leading_x(), &zero, y_.data(), leading_y()),
          "rsb_tune_spmm");
  }
  ~RsbPeer() override { rsb_mtx_free(matrix_); }

  void multiply() override {
    const T one = 1, zero = 0;
    const rsb_err_t error = operands_.columns() == 1
                                ? rsb_spmv(RSB_TRANSPOSITION_N, &one, matrix_, x_.data(), 1, &zero, y_.data(), 1)
                                : rsb_spmm(RSB_TRANSPOSITION_N, &one, matrix_, operands_.columns(), order(), x_.data(),
                                           leading_x(), &zero, y_.data(), leading_y());
    check(error, "product");
  }
  void store_result() override { std::copy(y_.begin(), y_.end(), operands_.y<T>().begin()); }

 private:
  bool by_columns() const { return operands_.column_major() || operands_.columns() == 1; }
  rsb_flags_t order() const { return by_columns() ? RSB_FLAG_WANT_COLUMN_MAJOR_ORDER : RSB_FLAG_WANT_ROW_MAJOR_ORDER; }
  int leading_x() const { return by_columns() ? operands_.cols() : operands_.columns(); }
  int leading_y() const { return by_columns() ? operands_.rows() : operands_.columns(); }

  Operands operands_;
  std::vector<T> x_, y_;
  rsb_mtx_t* matrix_ = nullptr;
};

std::unique_ptr<Peer> make(const Operands& a, bool symmetric) {
  if (a.is_f64()) return std::make_unique<RsbPeer<double>>(a, symmetric);
  return std::make_unique<RsbPeer<float>>(a, symmetric);
}
std::unique_ptr<Peer> make_full(const Operands& a) { return make(a, false); }
std::unique_ptr<Peer> make_symmetric(const Operands& a) {
  require_symmetric(a);
  return make(a, true);
}

constexpr PeerKind kPeers[] = {
    {.name = "librsb", .heading = "librsb", .parallel = Parallel::threads, .make = make_full},
    {.name = "librsb_symmetric",
     .heading = "librsb symmetric",
     .symmetric = true,
     .parallel = Parallel::threads,
     .make = make_symmetric},
};

}  // namespace

std::span<const PeerKind> librsb_peers() { return kPeers; }

}  // namespace shardmat::peers
