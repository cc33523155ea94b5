// PETSc: AIJ, SELL, BAIJ and SBAIJ, on one rank or spread over the ranks of mpirun by nonzeros, and its solvers: GAMG,
// BoomerAMG of hypre, and simple preconditioners on AIJ and BAIJ. Debian's library is built for f64 alone.
#include <petscksp.h>

#include <algorithm>
#include <string_view>
#include <utility>
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
  const Operands& operands() const { return operands_; }
  int first_row() const { return first_; }
  int rows() const { return rows_; }

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

/// A preconditioner with its options.
struct Configuration {
  const char *name, *heading;
  const char* compared;  ///< with this preconditioner of ours
  MatType type;
  const char *detail, *base = "", *options;
  bool scalar = false;  ///< only where nodes have one unknown: elsewhere its set-up takes minutes
};

/// KSP with the options of a configuration.
class PetscSolver : public PetscPeer {
 public:
  PetscSolver(const Operands& a, const Configuration& with, int block) : PetscPeer(a, with.type, block), with_(with) {
    detail = detail.empty() ? with.detail : *with.detail == 0 ? detail : std::string(with.detail) + ", " + detail;
    check(MatGetLocalSize(matrix(), &local_, nullptr), "MatGetLocalSize");
    if (with_.compared == std::string_view("multigrid")) set_near_null_space();
  }
  ~PetscSolver() override { KSPDestroy(&ksp_); }

  void meet() override { MPI_Barrier(PETSC_COMM_WORLD); }
  void set_up(const SolveRequest& request) override {
    const bool cg = request.method == "cg";
    if (!cg && request.method != "gmres") throw Refused("no method " + request.method);
    if (cg) check(MatSetOption(matrix(), MAT_SPD, PETSC_TRUE), "MatSetOption");
    check(KSPCreate(PETSC_COMM_WORLD, &ksp_), "KSPCreate");
    check(KSPSetOperators(ksp_, matrix(), matrix()), "KSPSetOperators");
    check(KSPSetType(ksp_, cg ? KSPCG : KSPGMRES), "KSPSetType");
    if (!cg) check(KSPSetPCSide(ksp_, PC_RIGHT), "KSPSetPCSide");
    check(KSPSetNormType(ksp_, KSP_NORM_UNPRECONDITIONED), "KSPSetNormType");
    check(KSPSetTolerances(ksp_, request.rtol, 0, PETSC_DEFAULT, request.most), "KSPSetTolerances");
    const std::string prefix = std::string(with_.name) + "_";
    check(PetscOptionsPrefixPush(nullptr, prefix.c_str()), "PetscOptionsPrefixPush");
    for (const char* options : {with_.base, with_.options})
      check(PetscOptionsInsertString(nullptr, options), "PetscOptionsInsertString");
    check(PetscOptionsPrefixPop(nullptr), "PetscOptionsPrefixPop");
    check(KSPSetResidualHistory(ksp_, nullptr, request.most + 1, PETSC_TRUE), "KSPSetResidualHistory");
    check(KSPSetOptionsPrefix(ksp_, prefix.c_str()), "KSPSetOptionsPrefix");
    check(KSPSetFromOptions(ksp_), "KSPSetFromOptions");
    check(KSPSetUp(ksp_), "KSPSetUp");
  }
  int solve() override {
    check(VecSet(y(), 0), "VecSet");
    check(KSPSolve(ksp_, x(), y()), "KSPSolve");
    int iterations = 0;
    check(KSPGetIterationNumber(ksp_, &iterations), "KSPGetIterationNumber");
    return iterations;
  }
  std::span<const double> history() override {
    const PetscReal* norms = nullptr;
    PetscInt count = 0;
    check(KSPGetResidualHistory(ksp_, &norms, &count), "KSPGetResidualHistory");
    return {norms, static_cast<std::size_t>(count)};
  }
  void refresh() override {
    scale(2);
    check(KSPSetOperators(ksp_, matrix(), matrix()), "KSPSetOperators");
    check(KSPSetUp(ksp_), "KSPSetUp");
  }
  void forget() override {
    check(KSPDestroy(&ksp_), "KSPDestroy");
    if (factor_ != 1) scale(1 / factor_);
  }

 private:
  void scale(double factor) {
    check(MatScale(matrix(), factor), "MatScale");
    factor_ *= factor;
  }
  /// Rigid-body modes, if nodes have as many unknowns as coordinates.
  void set_near_null_space() {
    const Operands& a = operands();
    const int dimensions = a.dimensions();
    if (dimensions == 0 || dimensions != a.node_size() || first_row() % dimensions != 0) return;
    Vec coordinates = nullptr;
    check(VecCreateMPI(PETSC_COMM_WORLD, local_, PETSC_DETERMINE, &coordinates), "VecCreateMPI");
    check(VecSetBlockSize(coordinates, dimensions), "VecSetBlockSize");
    PetscScalar* own = nullptr;
    check(VecGetArray(coordinates, &own), "VecGetArray");
    std::copy_n(a.coordinates().begin() + first_row(), rows(), own);
    check(VecRestoreArray(coordinates, &own), "VecRestoreArray");
    MatNullSpace modes = nullptr;
    check(MatNullSpaceCreateRigidBody(coordinates, &modes), "MatNullSpaceCreateRigidBody");
    check(MatSetNearNullSpace(matrix(), modes), "MatSetNearNullSpace");
    MatNullSpaceDestroy(&modes);
    VecDestroy(&coordinates);
    detail += ", rigid-body modes";
  }

  Configuration with_;
  KSP ksp_ = nullptr;
  PetscInt local_ = 0;
  double factor_ = 1;  ///< of the matrix, by refresh()
};

void require_supported(const Operands& a) {
  if (!a.is_f64()) throw Refused("this PETSc is built for f64 alone");
  require_one_column(a);
  start_petsc();
}
std::unique_ptr<Peer> make(const Operands& a, MatType type, int block) {
  require_supported(a);
  return std::make_unique<PetscPeer>(a, type, block);
}
std::unique_ptr<Peer> make_aij(const Operands& a) { return make(a, MATAIJ, 1); }
std::unique_ptr<Peer> make_sell(const Operands& a) { return make(a, MATSELL, 1); }
std::unique_ptr<Peer> make_baij(const Operands& a) { return make(a, MATBAIJ, choose_block_size(a)); }
std::unique_ptr<Peer> make_sbaij(const Operands& a) {
  require_symmetric(a);
  return make(a, MATSBAIJ, best_block_size(a));
}

constexpr const char* kGamg =
    "-pc_type gamg -pc_gamg_type agg -pc_gamg_agg_nsmooths 1 -pc_gamg_coarse_eq_limit 900 -mg_levels_ksp_type chebyshev "
    "-mg_levels_ksp_max_it 2 -mg_levels_pc_type jacobi -mg_levels_esteig_ksp_type cg -mg_levels_esteig_ksp_max_it 10";
constexpr const char* kBoomerAmg =
    "-pc_type hypre -pc_hypre_type boomeramg -pc_hypre_boomeramg_coarsen_type HMIS "
    "-pc_hypre_boomeramg_interp_type ext+i -pc_hypre_boomeramg_P_max 4";

/// Those of one heading are alternatives: the bench tries each and keeps the fastest.
constexpr Configuration kConfigurations[] = {
    {.name = "petsc_gamg_0",
     .heading = "PETSc GAMG",
     .compared = "multigrid",
     .type = MATAIJ,
     .detail = "threshold 0, aggressive coarsening",
     .base = kGamg,
     .options = "-pc_gamg_threshold 0 -pc_gamg_aggressive_coarsening 1 -pc_gamg_square_graph 1"},
    {.name = "petsc_gamg_2",
     .heading = "PETSc GAMG",
     .compared = "multigrid",
     .type = MATAIJ,
     .detail = "threshold 0.02, aggressive coarsening",
     .base = kGamg,
     .options = "-pc_gamg_threshold 0.02 -pc_gamg_aggressive_coarsening 1 -pc_gamg_square_graph 1"},
    {.name = "petsc_gamg_plain",
     .heading = "PETSc GAMG",
     .compared = "multigrid",
     .type = MATAIJ,
     .detail = "threshold 0.05",
     .base = kGamg,
     .options = "-pc_gamg_threshold 0.05 -pc_gamg_aggressive_coarsening 0 -pc_gamg_square_graph 0",
     .scalar = true},
    {.name = "hypre_25",
     .heading = "hypre BoomerAMG",
     .compared = "multigrid",
     .type = MATAIJ,
     .detail = "strong threshold 0.25",
     .base = kBoomerAmg,
     .options = "-pc_hypre_boomeramg_strong_threshold 0.25"},
    {.name = "hypre_50",
     .heading = "hypre BoomerAMG",
     .compared = "multigrid",
     .type = MATAIJ,
     .detail = "strong threshold 0.5",
     .base = kBoomerAmg,
     .options = "-pc_hypre_boomeramg_strong_threshold 0.5"},
    {.name = "hypre_70",
     .heading = "hypre BoomerAMG",
     .compared = "multigrid",
     .type = MATAIJ,
     .detail = "strong threshold 0.7",
     .base = kBoomerAmg,
     .options = "-pc_hypre_boomeramg_strong_threshold 0.7"},
    {.name = "hypre_aggressive",
     .heading = "hypre BoomerAMG",
     .compared = "multigrid",
     .type = MATAIJ,
     .detail = "strong threshold 0.5, one aggressive level",
     .base = kBoomerAmg,
     .options = "-pc_hypre_boomeramg_strong_threshold 0.5 -pc_hypre_boomeramg_agg_nl 1"},
    {.name = "petsc_none_aij",
     .heading = "PETSc",
     .compared = "none",
     .type = MATAIJ,
     .detail = "AIJ",
     .options = "-pc_type none"},
    {.name = "petsc_none_baij",
     .heading = "PETSc",
     .compared = "none",
     .type = MATBAIJ,
     .detail = "BAIJ",
     .options = "-pc_type none"},
    {.name = "petsc_jacobi_aij",
     .heading = "PETSc Jacobi",
     .compared = "jacobi",
     .type = MATAIJ,
     .detail = "AIJ",
     .options = "-pc_type jacobi"},
    {.name = "petsc_jacobi_baij",
     .heading = "PETSc Jacobi",
     .compared = "jacobi",
     .type = MATBAIJ,
     .detail = "BAIJ",
     .options = "-pc_type jacobi"},
    {.name = "petsc_blocks_aij",
     .heading = "PETSc block Jacobi",
     .compared = "block_jacobi",
     .type = MATAIJ,
     .detail = "AIJ",
     .options = "-pc_type pbjacobi"},
    {.name = "petsc_blocks_baij",
     .heading = "PETSc block Jacobi",
     .compared = "block_jacobi",
     .type = MATBAIJ,
     .detail = "BAIJ",
     .options = "-pc_type pbjacobi"},
};

template <std::size_t I>
std::unique_ptr<Peer> make_solver(const Operands& a) {
  constexpr const Configuration& with = kConfigurations[I];
  require_supported(a);
  if (a.rows() != a.cols()) throw Refused("the matrix is not square");
  const int block = a.node_size() > 0 ? a.node_size() : best_block_size(a);
  if (block == 1 && std::string_view(with.type) == MATBAIJ) throw Refused("nodes have one unknown");
  if (block > 1 && with.scalar) throw Refused("nodes have several unknowns");
  return std::make_unique<PetscSolver>(a, with, block);
}

std::vector<PeerKind> list_peers() {
  std::vector<PeerKind> all{
      {.name = "petsc_aij", .heading = "PETSc AIJ", .parallel = Parallel::ranks, .make = make_aij},
      {.name = "petsc_sell", .heading = "PETSc SELL", .parallel = Parallel::ranks, .make = make_sell},
      {.name = "petsc_baij", .heading = "PETSc BAIJ", .parallel = Parallel::ranks, .make = make_baij},
      {.name = "petsc_sbaij", .heading = "PETSc SBAIJ", .symmetric = true, .parallel = Parallel::ranks, .make = make_sbaij},
  };
  const auto add = [&]<std::size_t... I>(std::index_sequence<I...>) {
    (all.push_back({.name = kConfigurations[I].name,
                    .heading = kConfigurations[I].heading,
                    .parallel = Parallel::ranks,
                    .preconditioner = kConfigurations[I].compared,
                    .make = make_solver<I>}),
     ...);
  };
  add(std::make_index_sequence<std::size(kConfigurations)>());
  return all;
}

}  // namespace

std::span<const PeerKind> petsc_peers() {
  static const std::vector<PeerKind> all = list_peers();
  return all;
}
void end_petsc() {
  if (started) PetscFinalize();
}

}  // namespace shardmat::peers
