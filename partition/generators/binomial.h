// Exact binomial variates that are the same on every machine: only IEEE + - * / and sqrt, no library
// distributions or logarithms.
#pragma once

#include <cstdint>

#include "partition/generators/counter_random.h"

namespace shardmat {

/// Successes in `trials` independent trials of the given probability in [0, 1]. Takes its numbers from
/// random.unit(0), (1), …. Constant time: inversion for small means, else transformed rejection (Hormann: The
/// Generation of Binomial Random Variates, 1993, algorithm BTRS).
std::int64_t binomial(std::int64_t trials, double probability, const CounterRandom& random);

}  // namespace shardmat
