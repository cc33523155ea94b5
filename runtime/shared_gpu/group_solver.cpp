#include "runtime/shared_gpu/group_solver.h"

#include <utility>
#include <vector>

#include "runtime/matrix/dense_copy.h"
#include "runtime/shared_gpu/answer_bytes.h"
#include "runtime/shared_gpu/hand_over.h"
#include "runtime/shared_gpu/own_nodes.h"
#include "runtime/shared_gpu/solve_news.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat {
namespace {

std::string to_text(const SolveResult& result) {
  AnswerBytes made;
  made.put(result.seconds), made.put(result.iterations), made.put(result.graph), made.put(result.why_f32);
  made.put(result.f32), made.put(result.maps_constants_to_zero), made.put(result.maps_more_to_zero);
  made.put(result.penalty_rows), made.put(result.penalty_ratio), made.put(result.penalty_note);
  made.put(result.null_vectors), made.put(result.null_space), made.put(result.fall_backs.size());
  for (const std::string& fall_back : result.fall_backs) made.put(fall_back);
  made.put(result.columns.size());
  for (const SolvedColumn& column : result.columns) {
    made.put(column.reason), made.put(column.iterations), made.put(column.norm_of_b), made.put(column.removed_from_b);
    made.put(column.residual), made.put(column.true_residual), made.put(column.spectrum), made.put(column.replacements);
    made.put(column.history), made.put(column.true_history), made.put(column.floor);
    made.put(column.backward_error);
  }
  return made.text();
}

SolveResult result_of(const std::string& text) {
  AnswerBytes from(text);
  SolveResult result;
  std::size_t columns = 0;
  from.get(result.seconds), from.get(result.iterations), from.get(result.graph), from.get(result.why_f32);
  from.get(result.f32), from.get(result.maps_constants_to_zero), from.get(result.maps_more_to_zero);
  from.get(result.penalty_rows), from.get(result.penalty_ratio), from.get(result.penalty_note);
  std::size_t fall_backs = 0;
  from.get(result.null_vectors), from.get(result.null_space), from.get(fall_backs);
  result.fall_backs.resize(fall_backs);
  for (std::string& fall_back : result.fall_backs) from.get(fall_back);
  from.get(columns);
  result.columns.resize(columns);
  for (SolvedColumn& column : result.columns) {
    from.get(column.reason), from.get(column.iterations), from.get(column.norm_of_b), from.get(column.removed_from_b);
    from.get(column.residual), from.get(column.true_residual), from.get(column.spectrum), from.get(column.replacements);
    from.get(column.history), from.get(column.true_history), from.get(column.floor);
    from.get(column.backward_error);
  }
  return result;
}

}  // namespace

GroupSolver::GroupSolver(GroupMatrix& matrix, const std::function<SolverOptions()>& give) : matrix_(matrix) {
  GroupContext& context = matrix.context();
  options_ = context.ranks().run_agreed(give);
  require_own_nodes(options_, matrix);
  context.ranks().run_agreed([&] {
    if (context.has_feeders() && options_.own_preconditioner)
      throw Error(
          ErrorKind::usage,
          "a preconditioner of the program needs a context in which every rank works on its own rows: feeders, which "
          "share the device of another rank, sleep during a solve. Refuse feeders, and start a rank for each device",
          "apply");
  });
  if (!context.has_feeders()) {
    make();
    return;
  }
  take_answer(context.group().call(
      "making a solver", [&] { return operands_of(options_); },
      [&](std::span<const GroupOperand> all) {
        context.group().owners().run_agreed([&] { take_nodes_of_group(options_, all); });
        make();
        return answer();
      },
      RankGroup::Keep::nothing));
}

void GroupSolver::make() {
  DistributedMatrix& of = matrix_.matrix();
  bring_own_nodes(options_, matrix_);
  solver_.emplace(of, options_);
  b_.emplace(of, VectorLayout::rows, sum_type(of.type()), options_.columns);
  x_.emplace(of, VectorLayout::rows, sum_type(of.type()), options_.columns);
  note_multigrid();
}

void GroupSolver::note_multigrid() {
  const MultigridReport* const report = solver_->preconditioner().multigrid();
  if (report != nullptr) multigrid_ = *report;
}

/// For feeders: the levels.
std::string GroupSolver::answer() const {
  AnswerBytes made;
  made.put(multigrid_.has_value());
  if (multigrid_) {
    made.put(multigrid_->levels), made.put(multigrid_->operator_complexity), made.put(multigrid_->modes);
    made.put(multigrid_->cycle), made.put(multigrid_->smoother), made.put(multigrid_->seconds), made.put(multigrid_->bytes);
    made.put(multigrid_->set_up_on_gpu), made.put(multigrid_->why_on_host);
  }
  return made.text();
}

void GroupSolver::take_answer(const std::string& text) {
  AnswerBytes from(text);
  bool is_multigrid = false;
  from.get(is_multigrid);
  if (!is_multigrid) return;
  MultigridReport& report = multigrid_.emplace();
  from.get(report.levels), from.get(report.operator_complexity), from.get(report.modes);
  from.get(report.cycle), from.get(report.smoother), from.get(report.seconds), from.get(report.bytes);
  from.get(report.set_up_on_gpu), from.get(report.why_on_host);
}

void GroupSolver::refresh() {
  GroupContext& context = matrix_.context();
  const auto work = [&] {
    solver_->refresh();
    note_multigrid();
  };
  if (!context.has_feeders()) return work();
  take_answer(context.group().call(
      "refreshing a solver", [] { return std::vector<Operand>(); },
      [&](std::span<const GroupOperand>) {
        work();
        return answer();
      }));
}

void GroupSolver::precondition_own(const ConstDense& r, const Dense& z) {
  Stream& stream = matrix_.context().stream();
  b_->set_own(r, stream);
  solver_->precondition(*b_, *x_);
  x_->own(z, stream);
}

void GroupSolver::precondition(const std::function<ConstDense()>& r, const std::function<Dense()>& z) {
  GroupContext& context = matrix_.context();
  ConstDense from;
  Dense to;
  const auto take = [&] {
    from = r(), to = z();
    require_shape("r", from, matrix_.own_rows(), options_.columns, context.device());
    require_shape("z", to, matrix_.own_rows(), options_.columns, context.device());
  };
  if (!context.has_feeders()) {
    context.ranks().run_agreed(take);
    return precondition_own(from, to);
  }
  HandOver over(context, context.stream());
  context.group().call(
      "the preconditioner",
      [&] {
        take();
        over.give("r", from, sum_type(matrix_.type()));
        over.give_and_take("z", to, sum_type(matrix_.type()), false);
        return over.operands();
      },
      [&](std::span<const GroupOperand> all) {
        over.gather(all);
        precondition_own(over.whole(0), over.whole(1));
        over.give_back();
        return std::string();
      });
}

SolveResult GroupSolver::run(const ConstDense& b, const Dense& x, const SolveControl& control) {
  Stream& stream = matrix_.context().stream();
  b_->set_own(b, stream);
  x_->set_own(x, stream);
  SolveResult result = solver_->solve(*b_, *x_, control);
  x_->own(x, stream);
  return result;
}

SolveResult GroupSolver::solve(const std::function<ConstDense()>& b, const std::function<Dense()>& x,
                               const SolveControl& control) {
  GroupContext& context = matrix_.context();
  ConstDense from;
  Dense to;
  if (!context.has_feeders()) {
    context.ranks().run_agreed([&] { from = b(), to = x(); });
    return run(from, to, control);
  }
  context.ranks().run_agreed([&] {
    if (control.watch)
      throw Error(ErrorKind::usage, "x can be watched only in a context without feeders; refuse feeders", "watch");
  });
  SolveNews news(options_.columns, control);
  HandOver over(context, context.stream());
  return news.checked(result_of(context.group().call(
      "the solve",
      [&] {
        from = b(), to = x();
        for (const ConstDense& view : {from, ConstDense(to)})
          require_shape("the entries", view, matrix_.own_rows(), options_.columns, context.device());
        over.give("b", from, sum_type(matrix_.type()));
        over.give_and_take("x", to, sum_type(matrix_.type()), true);
        std::vector<Operand> operands = over.operands();
        operands.push_back(news.board(context.owns())), operands.push_back(news.wish());
        return operands;
      },
      [&](std::span<const GroupOperand> all) {
        over.gather(all);
        const SolveResult result = run(over.whole(0), over.whole(1), news.control_of_owner(context.group(), all[3], all[4]));
        over.give_back();
        context.group().require_feeders("the solve");
        return to_text(result);
      },
      RankGroup::Keep::memory,
      [&](std::span<const GroupOperand> all) { news.read(all[3], all[4], context.group().place()); })));
}

}  // namespace shardmat
