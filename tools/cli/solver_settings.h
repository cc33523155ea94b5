// The options of solvers (runtime/solvers/solver_settings.h) as options of a command.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/solvers/solver_settings.h"
#include "tools/cli/options.h"

namespace shardmat::tools {

class SolverSettingOptions {
 public:
  /// Adds --restart for the setting "restart", and so on.
  explicit SolverSettingOptions(const CommandLine& command);
  /// After parsing: puts what was given into `options`. Throws Error(usage) for an option that the method or the
  /// preconditioner does not look at.
  void take(SolverOptions& options) const;

 private:
  CommandLine command_;
  std::shared_ptr<std::map<std::string, std::string>> texts_;  ///< by name of the setting
  std::shared_ptr<std::map<std::string, bool>> flags_;
};

}  // namespace shardmat::tools
