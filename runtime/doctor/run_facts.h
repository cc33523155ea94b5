// Where a measurement runs, for the report that holds it: job, hosts, cores of each rank, network, clocks, load by others.
#pragma once

#include <string>

#include "comm/communicator.h"

namespace shardmat::doctor {

/// A JSON object; the same on all ranks. Takes a quarter of a second, in which all ranks sleep, to see the load by others.
/// What a host does not tell is left out. Collective. `root`: as Options::root.
std::string facts_of_run(Communicator& communicator, const std::string& root = "");

/// The number of a batch job and what runs it, as "Slurm 4711"; empty outside a job.
std::string job_of_environment();

}  // namespace shardmat::doctor
