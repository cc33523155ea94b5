// Intel MKL's inspector-executor routines: compressed rows, blocks, and both with half of a symmetric matrix.
#include <mkl_service.h>
#include <mkl_spblas.h>

#include <algorithm>
#include <vector>

#include "tools/bench/peers/blocks.h"
#include "tools/bench/peers/peer.h"

namespace shardmat::peers {
namespace {

constexpr int kExpectedProducts = 1000;

void check(sparse_status_t status, const char* what) {
  if (status != SPARSE_STATUS_SUCCESS)
    throw Refused(std::string("MKL: ") + what + ": status " + std::to_string(static_cast<int>(status)));
}

// The two types by one name each.
sparse_status_t create_csr(sparse_matrix_t* m, int rows, int cols, int* ptr, int* col, double* v) {
  return mkl_sparse_d_create_csr(m, SPARSE_INDEX_BASE_ZERO, rows, cols, ptr, ptr + 1, col, v);
}
sparse_status_t create_csr(sparse_matrix_t* m, int rows, int cols, int* ptr, int* col, float* v) {
  return mkl_sparse_s_create_csr(m, SPARSE_INDEX_BASE_ZERO, rows, cols, ptr, ptr + 1, col, v);
}
sparse_status_t create_bsr(sparse_matrix_t* m, int rows, int cols, int size, int* ptr, int* col, double* v) {
  return mkl_sparse_d_create_bsr(m, SPARSE_INDEX_BASE_ZERO, SPARSE_LAYOUT_ROW_MAJOR, rows, cols, size, ptr, ptr + 1, col, v);
}
sparse_status_t create_bsr(sparse_matrix_t* m, int rows, int cols, int size, int* ptr, int* col, float* v) {
  return mkl_sparse_s_create_bsr(m, SPARSE_INDEX_BASE_ZERO, SPARSE_LAYOUT_ROW_MAJOR, rows, cols, size, ptr, ptr + 1, col, v);
}
sparse_status_t mv(sparse_matrix_t m, matrix_descr d, const double* x, double* y) {
  return mkl_sparse_d_mv(SPARSE_OPERATION_NON_TRANSPOSE, 1, m, d, x, 0, y);
}
sparse_status_t mv(sparse_matrix_t m, matrix_descr d, const float* x, float* y) {
  return mkl_sparse_s_mv(SPARSE_OPERATION_NON_TRANSPOSE, 1, m, d, x, 0, y);
}
sparse_status_t mm(sparse_matrix_t m, matrix_descr d, sparse_layout_t l, const double* x, int k, int ldx, double* y,
                   int ldy) {
  return mkl_sparse_d_mm(SPARSE_OPERATION_NON_TRANSPOSE, 1, m, d, l, x, k, ldx, 0, y, ldy);
}
sparse_status_t mm(sparse_matrix_t m, matrix_descr d, sparse_layout_t l, const float* x, int k, int ldx, float* y, int ldy) {
  return mkl_sparse_s_mm(SPARSE_OPERATION_NON_TRANSPOSE, 1, m, d, l, x, k, ldx, 0, y, ldy);
}

template <class T>
class MklPeer : public Peer {
 public:
  MklPeer(const Operands& a, bool blocks, bool symmetric) : operands_(a), x_(copy_of(a.x<T>())), y_(a.y<T>().size()) {
    descr_.type = symmetric ? SPARSE_MATRIX_TYPE_SYMMETRIC : SPARSE_MATRIX_TYPE_GENERAL;
    descr_.mode = SPARSE_FILL_MODE_UPPER;
    descr_.diag = SPARSE_DIAG_NON_UNIT;
    if (blocks) store_blocks(symmetric);
    else store_rows(symmetric);
    try {
      if (a.columns() == 1)
        check(mkl_sparse_set_mv_hint(matrix_, SPARSE_OPERATION_NON_TRANSPOSE, descr_, kExpectedProducts), "mv hint");
      else
        check(mkl_sparse_set_mm_hint(matrix_, SPARSE_OPERATION_NON_TRANSPOSE, descr_, layout(), a.columns(),
                                     kExpectedProducts),
              "mm hint");
      check(mkl_sparse_optimize(matrix_), "optimize");
      multiply();  // where it does not take the combination, it says so here
    } catch (...) {
      mkl_sparse_destroy(matrix_);
      throw;
    }
  }
  ~MklPeer() override { mkl_sparse_destroy(matrix_); }

  void multiply() override {
    check(operands_.columns() == 1
              ? mv(matrix_, descr_, x_.data(), y_.data())
              : mm(matrix_, descr_, layout(), x_.data(), operands_.columns(), operands_.ldx(), y_.data(), operands_.ldy()),
          "product");
  }
  void store_result() override { std::copy(y_.begin(), y_.end(), operands_.y<T>().begin()); }

 private:
  sparse_layout_t layout() const { return operands_.column_major() ? SPARSE_LAYOUT_COLUMN_MAJOR : SPARSE_LAYOUT_ROW_MAJOR; }
  void store_rows(bool symmetric) {
    if (symmetric) {
      Triangle<T> upper = triangle_of<T>(operands_, true);
      row_ptr_ = std::move(upper.row_ptr), col_idx_ = std::move(upper.col_idx), values_ = std::move(upper.values);
    } else {
      row_ptr_ = copy_of(operands_.row_ptr()), col_idx_ = copy_of(operands_.col_idx());
      values_ = copy_of(operands_.values<T>());
    }
    check(create_csr(&matrix_, operands_.rows(), operands_.cols(), row_ptr_.data(), col_idx_.data(), values_.data()),
          "create_csr");
  }
  void store_blocks(bool symmetric) {
    Blocks<T> blocks = make_blocks<T>(operands_, choose_block_size(operands_), symmetric);
    row_ptr_ = std::move(blocks.row_ptr), col_idx_ = std::move(blocks.col_idx), values_ = std::move(blocks.values);
    detail = blocks.detail();
    check(create_bsr(&matrix_, blocks.rows, blocks.cols, blocks.size, row_ptr_.data(), col_idx_.data(), values_.data()),
          "create_bsr");
  }

  Operands operands_;
  matrix_descr descr_{};
  std::vector<int> row_ptr_, col_idx_;
  std::vector<T> values_, x_, y_;
  sparse_matrix_t matrix_ = nullptr;
};

template <bool blocks, bool symmetric>
std::unique_ptr<Peer> make(const Operands& a) {
  if (symmetric) require_symmetric(a);
  if (a.is_f64()) return std::make_unique<MklPeer<double>>(a, blocks, symmetric);
  return std::make_unique<MklPeer<float>>(a, blocks, symmetric);
}

constexpr PeerKind kPeers[] = {
    {.name = "mkl_csr", .heading = "MKL CSR", .parallel = Parallel::threads, .make = make<false, false>},
    {.name = "mkl_bsr", .heading = "MKL BSR", .parallel = Parallel::threads, .make = make<true, false>},
    {.name = "mkl_csr_symmetric",
     .heading = "MKL CSR symmetric",
     .symmetric = true,
     .parallel = Parallel::threads,
     .make = make<false, true>},
    {.name = "mkl_bsr_symmetric",
     .heading = "MKL BSR symmetric",
     .symmetric = true,
     .parallel = Parallel::threads,
     .make = make<true, true>},
};

}  // namespace

std::span<const PeerKind> mkl_peers() { return kPeers; }

}  // namespace shardmat::peers
