// What an owner tells its feeders while it solves, and what they wish: their monitors are called, and may end the solve.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "comm/shared_gpu/rank_group.h"
#include "runtime/solvers/solver.h"

namespace shardmat {

/// One solve on one rank. The news and the wishes are two operands of the group's call.
class SolveNews {
 public:
  /// `control`: of this rank.
  SolveNews(std::int64_t columns, const SolveControl& control) : columns_(columns), control_(control) {}

  /// The operand for the news, which the owner has, and the one for the wish of each rank.
  Operand board(bool owner) const;
  Operand wish() const;

  /// The control of the owner, which writes the news, and ends the solve if a feeder wishes that or has ended.
  SolveControl control_of_owner(const RankGroup& group, const GroupOperand& board, const GroupOperand& wishes) const;
  /// On a feeder: calls the monitor if there are news.
  void read(const GroupOperand& board, const GroupOperand& wishes, int place) noexcept;
  /// Throws what the monitor of a feeder threw; else returns the result.
  SolveResult checked(SolveResult result) const;

 private:
  std::int64_t columns_;
  const SolveControl& control_;
  std::uint64_t seen_ = 0;
  std::exception_ptr error_;
};

}  // namespace shardmat
