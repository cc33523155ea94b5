// The scenarios of `shardmat bench service`: one function each, and one line in the list of scenario.cpp.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "tools/bench/service/figures.h"
#include "tools/bench/service/materials.h"

namespace shardmat::tools::service_bench {

/// What the user asked for.
struct Setup {
  bool small = false;
  int ranks = 0;       ///< 0: as each scenario has it
  std::string matrix;  ///< empty: as each scenario has it
  MatrixFolder& library;
  int most_ranks;          ///< that there may be without a wish of the user
  double seconds = 0;      ///< of chaos; 0: by the size
  std::uint64_t seed = 1;  ///< of chaos

  int ranks_or(int usual) const { return ranks > 0 ? ranks : std::min(usual, most_ranks); }
  std::string matrix_or(const char* usual, const char* small_one) const {
    return !matrix.empty() ? matrix : small ? small_one : usual;
  }
  template <class T>
  T by_size(T full, T small_one) const {
    return small ? small_one : full;
  }
};

struct Scenario {
  std::string_view name, help;
  void (*run)(const Setup& setup, Outcome& outcome);
};

std::span<const Scenario> scenarios();

void run_overhead(const Setup& setup, Outcome& outcome);
void run_rate(const Setup& setup, Outcome& outcome);
void run_bodies(const Setup& setup, Outcome& outcome);
void run_merged(const Setup& setup, Outcome& outcome);
void run_stream(const Setup& setup, Outcome& outcome);
void run_solves(const Setup& setup, Outcome& outcome);
void run_latency(const Setup& setup, Outcome& outcome);
void run_overload(const Setup& setup, Outcome& outcome);
void run_kill(const Setup& setup, Outcome& outcome);
void run_stop(const Setup& setup, Outcome& outcome);
void run_idle(const Setup& setup, Outcome& outcome);
void run_bits(const Setup& setup, Outcome& outcome);
void run_leaks(const Setup& setup, Outcome& outcome);
void run_drain(const Setup& setup, Outcome& outcome);
void run_chaos(const Setup& setup, Outcome& outcome);

}  // namespace shardmat::tools::service_bench
