// Solves that go on where others ended.
//
// Threads: values; any thread.
#pragma once

#include <cstdint>

#include "runtime/solvers/loop/solve_result.h"
#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

/// The control of a solve that goes on after `before` iterations. `control` outlives it.
SolveControl counting_from(std::int64_t before, const SolveControl& control);

/// A solve that went on where `all` ended.
void append(SolveResult result, SolveResult& all);

}  // namespace shardmat
