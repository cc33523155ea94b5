// Eigen: compressed rows by sparse matrix times dense vector or matrix, with its OpenMP threads.
#include <Eigen/Core>
#include <Eigen/SparseCore>
#include <algorithm>
#include <vector>

#include "tools/bench/peers/blocks.h"
#include "tools/bench/peers/peer.h"

namespace shardmat::peers {
namespace {

/// Dense: the type of X and Y, a vector or a matrix in one order.
template <class T, class Dense>
class EigenPeer : public Peer {
 public:
  explicit EigenPeer(const Operands& a)
      : operands_(a),
        x_(copy_of(a.x<T>())),
        y_(a.y<T>().size()),
        dense_x_(x_.data(), a.cols(), a.columns()),
        dense_y_(y_.data(), a.rows(), a.columns()) {
    row_ptr_ = copy_of(a.row_ptr()), col_idx_ = copy_of(a.col_idx()), values_ = copy_of(a.values<T>());
  }

  void multiply() override {
    const Eigen::Map<const Eigen::SparseMatrix<T, Eigen::RowMajor, int>> matrix(
        operands_.rows(), operands_.cols(), operands_.nnz(), row_ptr_.data(), col_idx_.data(), values_.data());
    dense_y_.noalias() = matrix * dense_x_;
  }
  void store_result() override { std::copy(y_.begin(), y_.end(), operands_.y<T>().begin()); }

 private:
  Operands operands_;
  std::vector<int> row_ptr_, col_idx_;
  std::vector<T> values_, x_, y_;
  Eigen::Map<const Dense> dense_x_;
  Eigen::Map<Dense> dense_y_;
};

template <class T>
std::unique_ptr<Peer> make_as(const Operands& a) {
  if (a.columns() == 1) return std::make_unique<EigenPeer<T, Eigen::Matrix<T, Eigen::Dynamic, 1>>>(a);
  using ByRows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using ByColumns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
  if (a.column_major()) return std::make_unique<EigenPeer<T, ByColumns>>(a);
  return std::make_unique<EigenPeer<T, ByRows>>(a);
}

std::unique_ptr<Peer> make(const Operands& a) { return a.is_f64() ? make_as<double>(a) : make_as<float>(a); }

constexpr PeerKind kPeers[] = {
    {.name = "eigen", .heading = "Eigen", .parallel = Parallel::threads, .make = make},
};

}  // namespace

std::span<const PeerKind> eigen_peers() { return kPeers; }

}  // namespace shardmat::peers
