// The memory of a Monitor on the device, and its copy on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/krylov/monitor.h"

namespace shardmat {

class MonitorMemory {
 public:
  /// `restart`: of the options. `coefficients`: keeps those, too. Throws Error(resources).
  MonitorMemory(Device device, int columns, std::int64_t restart, bool coefficients);

  krylov::Monitor view() const;
  /// Iterations that may pass between two calls of look().
  std::int64_t history_length() const { return history_length_; }

  /// The most iterations of the solves from the next set() on.
  void allow(std::int64_t iterations) { most_iterations_ = iterations; }
  /// Of each column: goes on (Reason::none) or is done, and its limits; the numbers of iterations stay, or become 0.
  void set(const std::vector<krylov::Reason>& reasons, const std::vector<double>& converged_below,
           const std::vector<double>& diverged_above, bool from_zero, Stream& stream);
  /// Copies all to the host, or all but the history; waits.
  void look(Stream& stream);
  void look_without_history(Stream& stream);
  /// As of the last look.
  krylov::Reason reason(int column) const { return host<krylov::Reason>(kReason)[column]; }
  double norm(int column) const { return host<double>(kNorm)[column]; }
  std::int64_t iterations(int column) const { return host<std::int64_t>(kIterations)[column]; }
  /// After iteration `i`, from 1; one of the last history_length().
  double history(std::int64_t i, int column) const { return of_iteration(0, i, column); }
  bool has_coefficients() const { return coefficients_; }
  /// Of iteration `i`, as the history. REQUIRES: has_coefficients().
  double alpha(std::int64_t i, int column) const { return of_iteration(1, i, column); }
  double beta(std::int64_t i, int column) const { return of_iteration(2, i, column); }
  std::int64_t device_bytes() const { return static_cast<std::int64_t>(memory_.bytes()); }

 private:
  /// list: 0 norms, 1 alpha, 2 beta.
  double of_iteration(int list, std::int64_t i, int column) const {
    return host<double>(kHistory)[(list * history_length_ + (i - 1) % history_length_) * columns_ + column];
  }
  enum Part { kBelow, kAbove, kMost, kNorm, kIterations, kReason, kHistory };
  std::size_t offset(Part part) const { return static_cast<std::size_t>(part) * static_cast<std::size_t>(columns_) * 8; }
  template <class T>
  T* host(Part part) const {
    return reinterpret_cast<T*>(copy_.as<char>() + offset(part));
  }
  template <class T>
  T* device(Part part) const {
    return reinterpret_cast<T*>(memory_.as<char>() + offset(part));
  }

  int columns_;
  std::int64_t history_length_, most_iterations_ = 0;
  bool coefficients_;
  Buffer memory_;
  HostBuffer copy_;
};

}  // namespace shardmat
