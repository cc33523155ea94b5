// Preconditioners: z = M·r with M near the inverse of A. Their options: preconditioner_options.h.
//
// To add one: a file with a class and a factory, a line in preconditioner_list.cpp and CMakeLists.txt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/dense.h"
#include "kernels/base/device.h"
#include "runtime/solvers/loop/preconditioner_options.h"

namespace shardmat {

class DistributedMatrix;
class HeldRows;
class NullSpaceProjector;
struct DirectReport;
struct MultigridReport;
struct NullVectors;
struct SolverSetting;
namespace multigrid {
class Hierarchy;
}

/// Where a preconditioner needs so few iterations or fewer, each of its applications takes long.
constexpr std::int64_t kFewIterations = 32;

/// Threads: one thread at a time uses a preconditioner. Collective functions say so.
class Preconditioner {
 public:
  virtual ~Preconditioner() = default;
  /// Looks at the values of the matrix again, after update_values(). Collective; the same error on all ranks.
  virtual void refresh(Stream& stream) = 0;
  /// True if M is a diagonal, on all ranks or on none. Methods then multiply by diagonal() in their own passes.
  virtual bool is_diagonal() const { return false; }
  /// If M is a diagonal: its entries, one a row, of the matrix's sum_type() in device memory; null on a rank without rows.
  virtual const void* diagonal() const { return nullptr; }
  /// True if M is the identity, on all ranks or on none.
  virtual bool identity() const { return false; }
  /// True if M is not a linear map, on all ranks or on none: z does not depend on r alone in the way that most methods
  /// assume. Methods that are not flexible refuse it.
  virtual bool varies() const { return false; }
  /// Removes from r what does not belong to the vectors that M is made for (null_space.h), in stream order. Collective.
  virtual void project([[maybe_unused]] const Dense& r, Stream&) const {}
  /// Told what A maps to 0, if it was found later than PreconditionerOptions::projector.
  virtual void take_projector(std::shared_ptr<const NullSpaceProjector>) {}
  /// Told at the start of a solve: residuals begin at about this 2-norm. Does not change M but for rounding.
  virtual void expect([[maybe_unused]] double norm) const {}
  /// z = M·r, in stream order. Collective. Both hold this rank's rows, row-major; they do not overlap.
  virtual void apply(const Dense& r, const Dense& z, Stream& stream) const = 0;
  /// False: apply() cannot be recorded in a Graph.
  virtual bool capturable() const { return true; }
  /// About how many iterations a solve takes (see kFewIterations): after so many, residuals may be as small as rounding
  /// errors allow.
  virtual std::int64_t usual_iterations() const { return 1000; }
  /// Bytes that apply() reads and writes at least, on this rank; 0: not known.
  virtual std::int64_t apply_bytes() const { return 0; }
  virtual std::int64_t device_bytes() const = 0;
  /// What was built, for the report: "blocks of 3".
  virtual std::string describe() const { return {}; }
  /// The levels of multigrid; null: M is not multigrid. Valid until refresh().
  virtual const MultigridReport* multigrid() const { return nullptr; }
  virtual const multigrid::Hierarchy* hierarchy() const { return nullptr; }
  /// What it found A to map to 0; null: it does not look. Valid until refresh().
  virtual const NullVectors* null_vectors() const { return nullptr; }
  /// The factors of A; null: M is no direct solver. Valid until refresh().
  virtual const DirectReport* direct() const { return nullptr; }
};

/// The size of the blocks that block_jacobi takes if none is given: the unknowns of a node of this matrix, if these are at
/// most 6 and no rank has only some rows of a node; else 1.
std::int64_t block_jacobi_size(const DistributedMatrix& matrix);

/// One line in the list of preconditioners.
struct PreconditionerEntry {
  std::string_view name, help;
  /// Collective; the same error on all ranks. Must be called before the matrix drops its host rows.
  std::unique_ptr<Preconditioner> (*make)(DistributedMatrix& matrix, const PreconditionerOptions& options);
  /// Options that it looks at (setting.h); null: none, or another entry brings them. Those that name no users are of this
  /// preconditioner alone.
  std::vector<SolverSetting> (*settings)() = nullptr;
  /// It reads a KeptUpload. For all others, that is let go before they take memory.
  bool reads_upload = false;
};
std::span<const PreconditionerEntry> preconditioners();

/// Throws Error(usage) with the nearest name if no preconditioner has this one.
const PreconditionerEntry& find_preconditioner(std::string_view name);

std::unique_ptr<Preconditioner> make_no_preconditioner(DistributedMatrix&, const PreconditionerOptions&);
std::unique_ptr<Preconditioner> make_block_jacobi(DistributedMatrix&, const PreconditionerOptions&);
std::unique_ptr<Preconditioner> make_chebyshev_polynomial(DistributedMatrix&, const PreconditionerOptions&);
std::unique_ptr<Preconditioner> make_direct(DistributedMatrix&, const PreconditionerOptions&);
std::unique_ptr<Preconditioner> make_field_split(DistributedMatrix&, const PreconditionerOptions&);
std::unique_ptr<Preconditioner> make_ic(DistributedMatrix&, const PreconditionerOptions&);
std::unique_ptr<Preconditioner> make_ilu(DistributedMatrix&, const PreconditionerOptions&);
std::unique_ptr<Preconditioner> make_jacobi(DistributedMatrix&, const PreconditionerOptions&);
std::unique_ptr<Preconditioner> make_multigrid(DistributedMatrix&, const PreconditionerOptions&);

/// `held`: rows in which z becomes 0, or null. Calls set_up. Collective; errors of the functions are thrown by all ranks.
/// Throws Error(usage) without `apply`.
std::unique_ptr<Preconditioner> make_own_preconditioner(DistributedMatrix& matrix, const OwnPreconditioner& own,
                                                        std::int64_t columns, const HeldRows* held = nullptr);

}  // namespace shardmat
