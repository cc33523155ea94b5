// One context a backend for all tests of a program, and how tests run on each backend.
#pragma once

#include <gtest/gtest.h>

#include "runtime/context/context.h"
#include "tests/support/world.h"

namespace shardmat {

/// What both backends are asked to do.
struct Case {
  BackendChoice backend;
  ValueType type;
  const char* exchange = "auto";
};

/// Made on first use, as starting NCCL takes most of a second, and ended while there is MPI.
Context& context_of(const Case& c);

inline constexpr Case kHost64{BackendChoice::host, ValueType::f64},
    kHost32{BackendChoice::host, ValueType::f32, "allgather"}, kHostHalo{BackendChoice::host, ValueType::f64, "halo"};
inline constexpr Case kCuda64{BackendChoice::cuda, ValueType::f64},
    kCuda32{BackendChoice::cuda, ValueType::f32, "allgather"}, kCudaHalo{BackendChoice::cuda, ValueType::f64, "halo"},
    kCudaPeer{BackendChoice::cuda, ValueType::f64, "peer"};

/// Runs `check` on GPUs if every rank can have its own.
void on_gpus(void (*check)(const Case&), const Case& c);
/// Likewise if GPUs can reach each other's memory.
void on_peers(void (*check)(const Case&), const Case& c);

/// check(case) for each type and exchange, on each backend. tests/multigpu_runs.txt and tests/run.sh choose by the names of
/// the suites.
#define SHARDMAT_MATRIX_TEST(suite, name, check)                   \
  TEST(suite, name##F64) { check(kHost64); }                       \
  TEST(suite, name##F32) { check(kHost32); }                       \
  TEST(suite, name##Halo) { check(kHostHalo); }                    \
  TEST(Gpu##suite, name##F64) { on_gpus(check, kCuda64); }         \
  TEST(Gpu##suite, name##F32) { on_gpus(check, kCuda32); }         \
  TEST(MultiGpu##suite, name##F64) { on_gpus(check, kCuda64); }    \
  TEST(MultiGpu##suite, name##Halo) { on_gpus(check, kCudaHalo); } \
  TEST(MultiGpu##suite, name##Peer) { on_peers(check, kCudaPeer); }

/// check(case) for each type on each backend, where no x moves.
#define SHARDMAT_VECTOR_TEST(suite, name, check)           \
  TEST(suite, name##F64) { check(kHost64); }               \
  TEST(suite, name##F32) { check(kHost32); }               \
  TEST(Gpu##suite, name##F64) { on_gpus(check, kCuda64); } \
  TEST(Gpu##suite, name##F32) { on_gpus(check, kCuda32); } \
  TEST(MultiGpu##suite, name##F64) { on_gpus(check, kCuda64); }

}  // namespace shardmat
