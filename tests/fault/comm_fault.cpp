// Repeats one operation between ranks for ever, so that a driver can stop or kill one of them in the middle.
// Survivors print one line and leave with the error's exit code. Usage: comm_fault OPERATION TIMEOUT_SECONDS
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange/exchange.h"
#include "comm/long_wait.h"
#include "comm/mpi_session.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/placement.h"
#include "comm/shared_gpu/rank_group.h"
#include "comm/shared_gpu/rank_groups.h"
#include "tests/support/pretended_hosts.h"

namespace shardmat {
namespace {

using Operation = std::function<void(Communicator&)>;

void send_around(Communicator& ranks) {
  std::vector<char> data(100'000);
  const int next = (ranks.rank() + 1) % ranks.size(), previous = (ranks.rank() + ranks.size() - 1) % ranks.size();
  if (ranks.rank() == 0) ranks.send(data.data(), data.size(), next, 1);
  ranks.receive(data.data(), data.size(), previous, 1);
  if (ranks.rank() != 0) ranks.send(data.data(), data.size(), next, 1);
}

std::map<std::string, Operation> host_operations() {
  return {
      {"barrier", [](Communicator& ranks) { ranks.barrier(); }},
      {"broadcast", [](Communicator& ranks) { ranks.broadcast(std::string(100'000, 'x')); }},
      {"all_reduce", [](Communicator& ranks) { ranks.all_reduce(1.0, Reduction::sum); }},
      {"agree", [](Communicator& ranks) { ranks.agree(nullptr); }},
      {"send", send_around},
      {"duplicate", [](Communicator& ranks) { ranks.duplicate(std::numeric_limits<double>::infinity()); }},
  };
}

/// x of 4 MB a rank moved again and again, on whatever backend the ranks get.
void exchange_for_ever(Communicator& ranks, BackendChoice choice, const std::string& name) {
  const Placement placement = place_ranks(ranks, choice);
  const DeviceGuard guard(placement.device);
  std::unique_ptr<NcclCommunicator> nccl;
  if (placement.device.backend == Backend::cuda && ranks.size() > 1)
    nccl = std::make_unique<NcclCommunicator>(ranks, placement.device);
  std::vector<std::int64_t> starts;
  for (int p = 0; p <= ranks.size(); ++p) starts.push_back(p * std::int64_t{500'000});
  std::vector<std::int64_t> columns(static_cast<std::size_t>(starts.back()));
  std::iota(columns.begin(), columns.end(), std::int64_t{0});
  const auto exchange =
      make_mapped_exchange(name, {ranks, nccl.get(), placement.device, ValueType::f64}, {starts}, columns).exchange;
  Stream stream(placement.device);
  std::printf("ready\n");
  std::fflush(stdout);
  for (;;) {
    exchange->start(stream);
    exchange->finish(stream);
    exchange->wait(stream);
  }
}

/// Ranks 0 and 1 work alone, longer than the deadline; the others wait for them, in the middle or at the end.
void wait_long(Communicator& ranks, bool at_the_end) {
  {
    const LongWait wait(ranks);
    std::printf("ready\n");
    std::fflush(stdout);
    const double longer = 1.7 * ranks.timeout_seconds();
    if (ranks.rank() < 2) std::this_thread::sleep_for(std::chrono::duration<double>(ranks.rank() == 0 ? longer : 3600));
    if (!at_the_end) ranks.barrier();
  }
  ranks.barrier();
}

/// All but rank 1 wait for it inside MPI.
void join_first_ranks(Communicator& ranks) {
  ranks.barrier();
  std::printf("ready\n");
  std::fflush(stdout);
  if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(3600));
  ranks.first_ranks(ranks.size(), ranks.timeout_seconds());
}

/// Feeders hand over 100 kB again and again, to owners that work for a moment; or once, to owners that work for ever.
void feed_owners(Communicator& ranks, int owners, bool long_work) {
  RankGroup group(ranks, owners_of_ranks(ranks, BackendChoice::host, {true, owners}));
  const std::vector<char> data(100'000);
  const auto say = [] {
    std::printf("ready\n");
    std::fflush(stdout);
  };
  if (!group.owns() || !long_work) say();
  for (;;)
    group.call(
        "the work", [&] { return std::vector<Operand>{Operand::given(data.data(), data.size())}; },
        [&](std::span<const GroupOperand>) {
          if (long_work) say();
          for (; long_work; group.require_feeders("the work")) std::this_thread::sleep_for(std::chrono::milliseconds(100));
          return std::string();
        });
}

void run(Communicator& ranks, const std::string& name) {
  if (name == "feed_one") return feed_owners(ranks, 1, false);
  if (name == "feed_two") return feed_owners(ranks, 2, false);
  if (name == "feed_long_work") return feed_owners(ranks, 1, true);
  if (name.starts_with("host_")) return exchange_for_ever(ranks, BackendChoice::host, name.substr(5));
  if (name.starts_with("cuda_")) return exchange_for_ever(ranks, BackendChoice::cuda, name.substr(5));
  if (name == "long_wait") return wait_long(ranks, false);
  if (name == "end_of_long_wait") return wait_long(ranks, true);
  if (name == "first_ranks") return join_first_ranks(ranks);
  const auto operations = host_operations();
  const auto found = operations.find(name);
  if (found == operations.end()) throw Error(ErrorKind::usage, "no operation " + name);
  ranks.barrier();
  std::printf("ready\n");
  std::fflush(stdout);
  for (;;) found->second(ranks);
}

int run_program(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: comm_fault OPERATION TIMEOUT_SECONDS\n");
    return 2;
  }
  MpiSession session(&argc, &argv);
  pretend_hosts();
  try {
    Communicator ranks(MPI_COMM_WORLD, std::atof(argv[2]));
    ranks.on_broken([](const Error& why) {
      MpiSession::leave_after(10, 5, std::string("comm_fault: could not unwind: ") + why.what());
    });
    ranks.watch_calls(ranks.timeout_seconds(), [](const Error& why) {
      std::fprintf(stderr, "comm_fault: %s\n", why.what());
      MpiSession::leave(5);
    });
    run(ranks, argv[1]);
  } catch (const Error& e) {
    std::fprintf(stderr, "comm_fault: %s\n", e.what());
    if (e.kind() == ErrorKind::rank_lost) MpiSession::leave(e.exit_code());
    return e.exit_code();
  }
  return 0;
}

}  // namespace
}  // namespace shardmat

int main(int argc, char** argv) { return shardmat::run_program(argc, argv); }
