// molecules: graphs like those of small organic molecules, as adjacency matrices with their diagonal. A tree in which no
// atom has more than four neighbours, grown near its end as chains with short branches are, is closed to a few rings.
#include <algorithm>
#include <array>
#include <bitset>

#include "partition/batched/batch_list.h"
#include "partition/batched/generated_batch.h"
#include "partition/generators/arguments.h"
#include "partition/generators/counter_random.h"

namespace shardmat {
namespace {

constexpr std::uint64_t kSizeStream = 16, kBondStream = 17;
constexpr std::int64_t kLeastAtoms = 9, kMostAtoms = 29, kMostRings = 4, kMostNeighbours = 4;
/// A new atom is bonded to one of so many before it.
constexpr std::int64_t kReach = 4;

constexpr GeneratorParameter kParameters[] = {
    {"count", "16384", "number of molecules; each has 9 to 29 atoms, with 2.1 neighbours an atom on average"},
    {"seed", "1", "seed of sizes and bonds; values are 1"},
};

/// Symmetric pattern of one molecule.
class Bonds {
 public:
  explicit Bonds(std::int64_t atoms) : atoms_(atoms) {}

  bool free(std::int64_t atom) const { return neighbours_[index(atom)] < kMostNeighbours; }
  bool bonded(std::int64_t a, std::int64_t b) const { return bonds_[index(a)][index(b)]; }
  void bond(std::int64_t a, std::int64_t b) {
    bonds_[index(a)][index(b)] = bonds_[index(b)][index(a)] = true;
    ++neighbours_[index(a)];
    ++neighbours_[index(b)];
  }
  /// Bonds the first pair from (a, b) on that can be. There always is one: nine atoms or more with at most four rings have
  /// room for twelve more ends of bonds, and free atoms that were all bonded to each other would have room for six.
  void close_ring(std::int64_t a, std::int64_t b) {
    while (a == b || !free(a) || !free(b) || bonded(a, b))
      if (b = (b + 1) % atoms_; b == 0) a = (a + 1) % atoms_;
    bond(a, b);
  }

 private:
  static std::size_t index(std::int64_t atom) { return static_cast<std::size_t>(atom); }

  std::int64_t atoms_;
  std::array<std::bitset<kMostAtoms>, kMostAtoms> bonds_{};
  std::array<std::int64_t, kMostAtoms> neighbours_{};
};

class MoleculeBatch final : public GeneratedBatch {
 public:
  explicit MoleculeBatch(const Arguments& arguments)
      : GeneratedBatch(arguments.specification()),
        size_(arguments.seed(), kSizeStream),
        bond_(arguments.seed(), kBondStream) {
    count_up(arguments.integer("count", 0, std::int64_t{1} << 30));
  }

 private:
  std::int64_t rings(std::int64_t matrix) const { return size_.of(matrix).below(kMostRings + 1, 2); }

  Shape shape(std::int64_t matrix) const override {
    constexpr std::int64_t kHalf = (kMostAtoms - kLeastAtoms) / 2 + 1;
    const CounterRandom random = size_.of(matrix);
    const std::int64_t atoms = kLeastAtoms + random.below(kHalf, 0) + random.below(kHalf, 1);
    return {atoms, atoms, atoms + 2 * (atoms - 1 + rings(matrix))};
  }

  void fill(std::int64_t matrix, const Shape& shape, const Target& target) const override {
    const CounterRandom random = bond_.of(matrix);
    std::int64_t draw = 0;
    Bonds bonds(shape.rows);
    for (std::int64_t atom = 1; atom < shape.rows; ++atom) {
      // The atom before has one neighbour so far (the first none), so it is free.
      std::int64_t partner = atom - 1 - random.below(std::min(atom, kReach), draw++);
      while (!bonds.free(partner)) ++partner;
      bonds.bond(atom, partner);
    }
    for (std::int64_t ring = 0; ring < rings(matrix); ++ring) {
      const std::int64_t a = random.below(shape.rows, draw++);
      bonds.close_ring(a, (a + kReach + random.below(3, draw++)) % shape.rows);
    }
    std::int64_t nnz = 0;
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      for (std::int64_t col = 0; col < shape.rows; ++col)
        if (row == col || bonds.bonded(row, col)) {
          target.col_idx[nnz] = static_cast<std::int32_t>(col);
          target.values[nnz++] = 1;
        }
      target.row_ends[row] = nnz;
    }
  }

  CounterRandom size_, bond_;
};

}  // namespace

BatchGenerator molecules_generator() {
  return {"molecules", "graphs like those of small molecules, as symmetric matrices with their diagonal", kParameters,
          [](const GeneratorArguments& given) -> std::unique_ptr<BatchSource> {
            return std::make_unique<MoleculeBatch>(Arguments("molecules", kParameters, given));
          }};
}

}  // namespace shardmat
