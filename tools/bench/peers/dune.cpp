// DUNE (dune-istl): BCRSMatrix of scalars and of blocks, in one thread.
#include <dune/common/fmatrix.hh>
#include <dune/common/fvector.hh>
#include <dune/istl/bcrsmatrix.hh>
#include <dune/istl/bvector.hh>

#include <algorithm>

#include "tools/bench/peers/blocks.h"
#include "tools/bench/peers/peer.h"

namespace shardmat::peers {
namespace {

template <class T, int size>
class DunePeer : public Peer {
 public:
  explicit DunePeer(const Operands& a) : operands_(a) {
    const Blocks<T> blocks = make_blocks<T>(a, size);
    fill(blocks);
    x_.resize(static_cast<std::size_t>(blocks.cols)), y_.resize(static_cast<std::size_t>(blocks.rows));
    for (int i = 0; i < a.cols(); ++i) x_[static_cast<std::size_t>(i / size)][i % size] = a.x<T>()[i];
    if (size > 1) detail = blocks.detail();
  }

  void multiply() override { matrix_.mv(x_, y_); }
  void store_result() override {
    for (int i = 0; i < operands_.rows(); ++i) operands_.y<T>()[i] = y_[static_cast<std::size_t>(i / size)][i % size];
  }

 private:
  using Block = Dune::FieldMatrix<T, size, size>;
  using Entries = Dune::BlockVector<Dune::FieldVector<T, size>>;

  void fill(const Blocks<T>& blocks) {
    const auto rows = static_cast<std::size_t>(blocks.rows);
    const auto begin = [&](std::size_t i) { return blocks.col_idx.begin() + blocks.row_ptr[i]; };
    matrix_.setBuildMode(Dune::BCRSMatrix<Block>::random);
    matrix_.setSize(rows, static_cast<std::size_t>(blocks.cols), blocks.col_idx.size());
    for (std::size_t i = 0; i < rows; ++i) matrix_.setrowsize(i, static_cast<std::size_t>(begin(i + 1) - begin(i)));
    matrix_.endrowsizes();
    for (std::size_t i = 0; i < rows; ++i) matrix_.setIndices(i, begin(i), begin(i + 1));
    matrix_.endindices();
    const T* value = blocks.values.data();
    for (auto& row : matrix_)
      for (auto& block : row)
        for (auto& line : block)
          for (auto& entry : line) entry = *value++;
  }

  Operands operands_;
  Dune::BCRSMatrix<Block> matrix_;
  Entries x_, y_;
};

template <class T>
std::unique_ptr<Peer> make_blocks_of(const Operands& a, int size) {
  switch (size) {
    case 1:
      return std::make_unique<DunePeer<T, 1>>(a);
    case 2:
      return std::make_unique<DunePeer<T, 2>>(a);
    case 3:
      return std::make_unique<DunePeer<T, 3>>(a);
    case 4:
      return std::make_unique<DunePeer<T, 4>>(a);
    case 5:
      return std::make_unique<DunePeer<T, 5>>(a);
    default:
      return std::make_unique<DunePeer<T, 6>>(a);
  }
}

std::unique_ptr<Peer> make(const Operands& a, bool blocks) {
  require_one_column(a);
  const int size = blocks ? choose_block_size(a) : 1;
  return a.is_f64() ? make_blocks_of<double>(a, size) : make_blocks_of<float>(a, size);
}
std::unique_ptr<Peer> make_scalars(const Operands& a) { return make(a, false); }
std::unique_ptr<Peer> make_block_rows(const Operands& a) { return make(a, true); }

constexpr PeerKind kPeers[] = {
    {.name = "dune", .heading = "DUNE", .parallel = Parallel::serial, .make = make_scalars},
    {.name = "dune_blocks", .heading = "DUNE blocks", .parallel = Parallel::serial, .make = make_block_rows},
};

}  // namespace

std::span<const PeerKind> dune_peers() { return kPeers; }

}  // namespace shardmat::peers
