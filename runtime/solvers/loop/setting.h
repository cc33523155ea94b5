// One option of solvers, and the functions that describe one. A method or a preconditioner describes those of its own in its
// file; solver_settings.h has the table of all.
//
// Threads: any thread. Nothing here is collective.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

struct SolverSetting {
  std::string name;                       ///< "restart"; the command calls it --restart
  std::string help;                       ///< what its values do
  std::string values = {};                ///< those that it takes: "a whole number from 1 to 100000"
  std::vector<std::string> choices = {};  ///< the words that it takes; empty: a number, a flag, or text
  bool flag = false, whole = false;       ///< "0" or "1"; a whole number
  bool text = false;                      ///< as its help says
  /// Methods or preconditioners that look at it; empty: all do.
  std::string of = {};  ///< "solver" or "preconditioner"
  std::vector<std::string> users = {};
  /// True if the chosen method or preconditioner looks at it.
  bool is_used(const SolverOptions& options) const;
  std::string unset = {};                                     ///< what get() says where the default depends on the matrix
  std::function<std::string(const SolverOptions&)> get = {};  ///< as text that set() takes
  /// Throws Error(usage) for another value, naming those that it takes.
  std::function<void(SolverOptions&, const std::string&)> set = {};
};

namespace settings {

/// The variable of a setting in the options.
template <class T>
using Variable = std::function<T&(SolverOptions&)>;

/// One of the names of an enumeration or a list. `parse` puts it into the options, and refuses others.
SolverSetting word(std::string name, std::string help, std::vector<std::string> choices,
                   std::function<std::string(const SolverOptions&)> get,
                   std::function<void(SolverOptions&, const std::string&)> parse);
/// A word for which there is no enumeration.
SolverSetting word(std::string name, std::string help, std::vector<std::string> choices, Variable<std::string> in);
/// `least`: itself allowed.
SolverSetting number(std::string name, std::string help, double least, Variable<double> in);
/// `least`: itself not allowed, but infinity.
SolverSetting number_above(std::string name, std::string help, double least, Variable<double> in);
SolverSetting count(std::string name, std::string help, std::int64_t least, std::int64_t most, Variable<int> in);
SolverSetting count(std::string name, std::string help, std::int64_t least, std::int64_t most, Variable<std::int64_t> in);
SolverSetting flag(std::string name, std::string help, Variable<bool> in);
/// "auto", or a 0 or a 1 for each of some things, both of which occur.
SolverSetting digits(std::string name, std::string help, Variable<std::string> in);

/// Settings that these methods alone look at.
std::vector<SolverSetting> of_solvers(const std::vector<std::string>& users, std::vector<SolverSetting> settings);
/// Settings that these preconditioners alone look at.
std::vector<SolverSetting> of_preconditioners(const std::vector<std::string>& users, std::vector<SolverSetting> settings);

/// Throws Error(usage).
[[noreturn]] void refuse(const std::string& name, const std::string& values, const std::string& given);

}  // namespace settings
}  // namespace shardmat
