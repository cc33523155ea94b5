// PETSc: AIJ, SELL, BAIJ and SBAIJ, on one rank or spread over the ranks of mpirun by nonzeros, and its solvers on AIJ and
// BAIJ. Debian's library is built for f64 alone.
#include <petscksp.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "tools/bench/peers/blocks.h"
#include "tools/bench/peers/peer.h"

namespace shardmat::peers {
namespace {

bool started = false;

void check(PetscErrorCode code, const char* what) {
  if (code == 0) return;
  const char* text = nullptr;
  PetscErrorMessage(code, &text, nullptr);
  throw Refused(std::string("PETSc: ") + what + ": " + (text != nullptr ? text : "error"));
}

void start_petsc() {
  if (started) return;
  check(PetscInitializeNoArguments(), "PetscInitialize");
  PetscPushErrorHandler(PetscReturnErrorHandler, nullptr);
  started = true;
}

/// First row of each rank: equal shares of the nonzeros, whole blocks.
std::vector<int> split_rows(const Operands& a, int ranks, int block) {
  std::vector<int> first{0};
  for (int rank = 1; rank < ranks; ++rank) {
    const auto wanted = static_cast<std::int64_t>(a.nnz()) * rank / ranks;
    const auto at = std::lower_bound(a.row_ptr().begin(), a.row_ptr().end() - 1, wanted) - a.row_ptr().begin();
    first.push_back(std::max(first.back(), static_cast<int>(at) / block * block));
  }
  first.push_back(a.rows());
  return first;
}

class PetscPeer : public Peer {
 public:
  PetscPeer(const Operands& a, MatType type, int block) : operands_(a) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
    MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
    if (ranks > 1 && a.rows() != a.cols()) throw Refused("only square matrices are spread over ranks");
    const std::vector<int> first = split_rows(a, ranks, block);
    first_ = first[static_cast<std::size_t>(rank)], rows_ = first[static_cast<std::size_t>(rank) + 1] - first_;
    const std::string_view wanted = type;
    try {
      create(type, ranks, block);
      if (wanted == MATAIJ) fill_aij();
      else if (wanted == MATSELL) fill_sell(ranks);
      else fill_blocks(make_blocks<double>(a, block, wanted == MATSBAIJ), ranks);
      fill_vectors();
    } catch (...) {
      release();
      throw;
    }
    if (block > 1) detail = std::to_string(block) + " × " + std::to_string(block) + " blocks";
    if (ranks > 1) detail += (detail.empty() ? "" : ", ") + std::to_string(ranks) + " ranks";
  }
  ~PetscPeer() override { release(); }

  void multiply() override { check(MatMult(matrix_, x_, y_), "MatMult"); }
  void store_result() override {
    const PetscScalar* y = nullptr;
    check(VecGetArrayRead(y_, &y), "VecGetArrayRead");
    std::copy_n(y, rows_, operands_.y<double>().begin() + first_);
    check(VecRestoreArrayRead(y_, &y), "VecRestoreArrayRead");
  }

 private:
  /// An empty matrix of this rank's rows.
  void create(MatType type, int ranks, int block) {
    check(MatCreate(PETSC_COMM_WORLD, &matrix_), "MatCreate");
    check(MatSetSizes(matrix_, rows_, ranks > 1 ? rows_ : operands_.cols(), operands_.rows(), operands_.cols()),
          "MatSetSizes");
    check(MatSetBlockSize(matrix_, block), "MatSetBlockSize");
    check(MatSetType(matrix_, type), "MatSetType");
  }
  void fill_aij() {
    const auto ptr = operands_.row_ptr().subspan(static_cast<std::size_t>(first_), static_cast<std::size_t>(rows_) + 1);
    std::vector<PetscInt> row_ptr;
    for (const int p : ptr) row_ptr.push_back(p - ptr[0]);
    const int* columns = operands_.col_idx().data() + ptr[0];
    const double* values = operands_.values<double>().data() + ptr[0];
    check(MatSeqAIJSetPreallocationCSR(matrix_, row_ptr.data(), columns, values), "MatSeqAIJSetPreallocationCSR");
    check(MatMPIAIJSetPreallocationCSR(matrix_, row_ptr.data(), columns, values), "MatMPIAIJSetPreallocationCSR");
  }
  // Row by row, not by MatConvert: PETSc 3.18 converts AIJ on several ranks to a SELL that multiplies wrongly, and takes
  // minutes from AIJ to a large SBAIJ.
  void fill_sell(int ranks) {
    std::vector<PetscInt> own, others;
    for (int i = first_; i < first_ + rows_; ++i) {
      const int* begin = operands_.col_idx().data() + operands_.row_ptr()[i];
      const int* end = operands_.col_idx().data() + operands_.row_ptr()[i + 1];
      const auto count = std::count_if(begin, end, [&](int j) { return ranks == 1 || (j >= first_ && j < first_ + rows_); });
      own.push_back(static_cast<PetscInt>(count)), others.push_back(static_cast<PetscInt>(end - begin - count));
    }
    check(MatSeqSELLSetPreallocation(matrix_, 0, own.data()), "MatSeqSELLSetPreallocation");
    check(MatMPISELLSetPreallocation(matrix_, 0, own.data(), 0, others.data()), "MatMPISELLSetPreallocation");
    for (PetscInt i = first_; i < first_ + rows_; ++i) {
      const int begin = operands_.row_ptr()[i], count = operands_.row_ptr()[i + 1] - begin;
      check(MatSetValues(matrix_, 1, &i, count, operands_.col_idx().data() + begin,
                         operands_.values<double>().data() + begin, INSERT_VALUES),
            "MatSetValues");
    }
    assemble();
  }
  /// BAIJ, or SBAIJ from the blocks on the diagonal and above.
  void fill_blocks(const Blocks<double>& blocks, int ranks) {
    const int size = blocks.size, first = first_ / size, last = (first_ + rows_) / size;
    std::vector<PetscInt> own, others;
    for (int i = first; i < last; ++i) {
      const int *begin = blocks.col_idx.data() + blocks.row_ptr[i], *end = blocks.col_idx.data() + blocks.row_ptr[i + 1];
      const auto count = std::count_if(begin, end, [&](int j) { return ranks == 1 || (j >= first && j < last); });
      own.push_back(static_cast<PetscInt>(count)), others.push_back(static_cast<PetscInt>(end - begin - count));
    }
    check(MatSeqBAIJSetPreallocation(matrix_, size, 0, own.data()), "MatSeqBAIJSetPreallocation");
    check(MatMPIBAIJSetPreallocation(matrix_, size, 0, own.data(), 0, others.data()), "MatMPIBAIJSetPreallocation");
    check(MatSeqSBAIJSetPreallocation(matrix_, size, 0, own.data()), "MatSeqSBAIJSetPreallocation");
    check(MatMPISBAIJSetPreallocation(matrix_, size, 0, own.data(), 0, others.data()), "MatMPISBAIJSetPreallocation");
    std::vector<double> rows;  // of a block row, each row of all its blocks together
    for (PetscInt i = first; i < last; ++i) {
      const int begin = blocks.row_ptr[i], count = blocks.row_ptr[i + 1] - begin;
      rows.clear();
      for (int line = 0; line < size; ++line)
        for (int k = begin; k < begin + count; ++k)
          for (int column = 0; column < size; ++column)
            rows.push_back(blocks.values[(static_cast<std::size_t>(k) * size + line) * size + column]);
      check(MatSetValuesBlocked(matrix_, 1, &i, count, blocks.col_idx.data() + begin, rows.data(), INSERT_VALUES),
            "MatSetValuesBlocked");
    }
    assemble();
  }
  void assemble() {
    check(MatAssemblyBegin(matrix_, MAT_FINAL_ASSEMBLY), "MatAssemblyBegin");
    check(MatAssemblyEnd(matrix_, MAT_FINAL_ASSEMBLY), "MatAssemblyEnd");
  }
  void fill_vectors() {
    check(MatCreateVecs(matrix_, &x_, &y_), "MatCreateVecs");
    PetscInt first = 0, last = 0;
    check(VecGetOwnershipRange(x_, &first, &last), "VecGetOwnershipRange");
    PetscScalar* x = nullptr;
    check(VecGetArray(x_, &x), "VecGetArray");
    std::copy_n(operands_.x<double>().begin() + first, last - first, x);
    check(VecRestoreArray(x_, &x), "VecRestoreArray");
  }

 protected:
  Mat matrix() const { return matrix_; }
  Vec x() const { return x_; }
  Vec y() const { return y_; }

 private:
  void release() {
    VecDestroy(&x_);
    VecDestroy(&y_);
    MatDestroy(&matrix_);
  }

  Operands operands_;
  Mat matrix_ = nullptr;
  Vec x_ = nullptr, y_ = nullptr;
  int first_ = 0, rows_ = 0;
};

/// KSP solves with PETSc's defaults except for what the request says.
class PetscSolver : public PetscPeer {
 public:
  using PetscPeer::PetscPeer;
  ~PetscSolver() override { KSPDestroy(&ksp_); }

  void prepare_solve(const SolveRequest& request) override {
    KSPDestroy(&ksp_);
    check(KSPCreate(PETSC_COMM_WORLD, &ksp_), "KSPCreate");
    check(KSPSetOperators(ksp_, matrix(), matrix()), "KSPSetOperators");
    if (request.method != "cg" && request.method != "gmres") throw Refused("no method " + request.method);
    check(KSPSetType(ksp_, request.method == "cg" ? KSPCG : KSPGMRES), "KSPSetType");
    if (request.method == "gmres") check(KSPSetPCSide(ksp_, PC_RIGHT), "KSPSetPCSide");
    check(KSPSetNormType(ksp_, KSP_NORM_UNPRECONDITIONED), "KSPSetNormType");
    PC preconditioner = nullptr;
    check(KSPGetPC(ksp_, &preconditioner), "KSPGetPC");
    check(PCSetType(preconditioner, type_of(request.preconditioner)), "PCSetType");
    check(KSPSetTolerances(ksp_, request.rtol, PETSC_DEFAULT, PETSC_DEFAULT, request.most), "KSPSetTolerances");
    check(KSPSetUp(ksp_), "KSPSetUp");
    check(VecSet(y(), 1), "VecSet");
  }
  Solved solve() override {
    check(KSPSolve(ksp_, y(), x()), "KSPSolve");
    Solved solved;
    PetscReal residual = 0, of_b = 0;
    check(KSPGetIterationNumber(ksp_, &solved.iterations), "KSPGetIterationNumber");
    check(KSPGetResidualNorm(ksp_, &residual), "KSPGetResidualNorm");
    check(VecNorm(y(), NORM_2, &of_b), "VecNorm");
    solved.residual = residual / of_b;
    return solved;
  }

 private:
  static PCType type_of(const std::string& preconditioner) {
    if (preconditioner == "none") return PCNONE;
    if (preconditioner == "jacobi") return PCJACOBI;
    if (preconditioner == "block_jacobi") return PCPBJACOBI;
    throw Refused("no preconditioner " + preconditioner);
  }

  KSP ksp_ = nullptr;
};

/// With `block` 0: the blocks that take the fewest bytes.
template <class Made = PetscPeer>
std::unique_ptr<Peer> make(const Operands& a, MatType type, int block) {
  if (!a.is_f64()) throw Refused("this PETSc is built for f64 alone");
  require_one_column(a);
  start_petsc();
  return std::make_unique<Made>(a, type, block == 0 ? choose_block_size(a) : block);
}
std::unique_ptr<Peer> make_aij(const Operands& a) { return make(a, MATAIJ, 1); }
std::unique_ptr<Peer> make_sell(const Operands& a) { return make(a, MATSELL, 1); }
std::unique_ptr<Peer> make_baij(const Operands& a) { return make(a, MATBAIJ, 0); }
std::unique_ptr<Peer> make_sbaij(const Operands& a) {
  require_symmetric(a);
  return make(a, MATSBAIJ, best_block_size(a));
}
/// The matrix knows its blocks, so that PCPBJACOBI inverts the same ones as on BAIJ.
std::unique_ptr<Peer> make_aij_solver(const Operands& a) { return make<PetscSolver>(a, MATAIJ, 0); }
std::unique_ptr<Peer> make_baij_solver(const Operands& a) { return make<PetscSolver>(a, MATBAIJ, 0); }

constexpr PeerKind kPeers[] = {
    {"petsc_aij", "PETSc AIJ", false, Parallel::ranks, false, make_aij},
    {"petsc_sell", "PETSc SELL", false, Parallel::ranks, false, make_sell},
    {"petsc_baij", "PETSc BAIJ", false, Parallel::ranks, false, make_baij},
    {"petsc_sbaij", "PETSc SBAIJ", true, Parallel::ranks, false, make_sbaij},
    {"petsc_ksp_aij", "PETSc AIJ", false, Parallel::ranks, true, make_aij_solver},
    {"petsc_ksp_baij", "PETSc BAIJ", false, Parallel::ranks, true, make_baij_solver},
};

}  // namespace

std::span<const PeerKind> petsc_peers() { return kPeers; }
void end_petsc() {
  if (started) PetscFinalize();
}

}  // namespace shardmat::peers
