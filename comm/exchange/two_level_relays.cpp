// two_level on GPUs: for each rank of another host, one rank of this host is the relay. It gets what any rank of this host
// needs of that rank, and sends each rank what it needs. Ranks of one host send each other their own entries directly.
//
//   owner ── distinct entries for the host, own entries for ranks of its host ─► relay ── what a rank needs ─► rank
//
// A GPU often has a network adapter of its own, so each rank sends what it owns, instead of one rank of a host for all.
// Relay and owner have the same place on their hosts. By NCCL between GPUs; by MPI on the host, where tests run it.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "comm/exchange/distinct_entries.h"
#include "comm/exchange/exchange_list.h"
#include "comm/exchange/two_level.h"
#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/vector.h"

namespace shardmat {
namespace {

constexpr int kTag = 31, kCountTag = 32, kNumberTag = 33;

/// Entries [first, first + count) of a buffer, for a rank or from it.
using Part = Halo::Peer;

/// Who sends what in the two steps.
struct Relays {
  std::vector<std::int32_t> packed;  ///< positions among the own entries that are sent in the first step
  std::vector<Part> sends;           ///< first step: parts of what is packed
  std::vector<Part> receives;        ///< first step, from ranks of this host: parts of x
  std::vector<Part> arrivals;        ///< first step, from ranks of other hosts: parts of what arrives at this relay
  std::int64_t arrived = 0;          ///< number of entries of all arrivals
  std::vector<std::int32_t> spread;  ///< second step: positions among what has arrived
  std::vector<Part> passes;          ///< second step: parts of `spread`; those for this rank are copied
  std::vector<Part> takes;           ///< second step: parts of x, in the order of the relay's `passes`
};

using Transfer = Communicator::Transfer;

/// Sends the values for each rank of this host, and receives as many from each as `expected` says.
template <class T>
std::vector<std::vector<T>> exchange_on_host(Communicator& communicator, const std::vector<int>& ranks,
                                             const std::vector<std::vector<T>>& values,
                                             const std::vector<std::size_t>& expected, int tag) {
  std::vector<std::vector<T>> found(ranks.size());
  std::vector<Transfer::Outgoing> sends;
  std::vector<Transfer::Incoming> receives;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    found[i].resize(expected[i]);
    sends.push_back({ranks[i], values[i].data(), values[i].size() * sizeof(T)});
    receives.push_back({ranks[i], found[i].data(), found[i].size() * sizeof(T)});
  }
  Transfer transfer = communicator.start(sends, receives, tag);
  communicator.finish(transfer);
  return found;
}

/// Collective; the same error on all ranks.
class RelayPlanner {
 public:
  RelayPlanner(Communicator& communicator, const Halo& halo)
      : communicator_(communicator),
        halo_(halo),
        entries_(find_distinct_entries(communicator, halo)),
        hosts_(ranks_of_hosts(communicator)),
        mine_(communicator.host_of(communicator.rank())) {}

  Relays plan() {
    communicator_.run_agreed([&] { plan_first_step(); });
    plan_second_step();
    return std::move(made_);
  }

 private:
  const std::vector<int>& own() const { return hosts_[static_cast<std::size_t>(mine_)]; }
  bool is_here(int rank) const { return communicator_.host_of(rank) == mine_; }
  /// The place among the ranks of `host` of the relay for what `owner` has.
  std::size_t relay_place(int owner, int host) const {
    const std::vector<int>& with_owner = hosts_[static_cast<std::size_t>(communicator_.host_of(owner))];
    const auto place =
        static_cast<std::size_t>(std::lower_bound(with_owner.begin(), with_owner.end(), owner) - with_owner.begin());
    return place % hosts_[static_cast<std::size_t>(host)].size();
  }

  void plan_first_step() {
    for (const DistinctEntries::Host& to : entries_.to) {
      if (to.host == mine_) continue;
      const int relay = hosts_[static_cast<std::size_t>(to.host)][relay_place(communicator_.rank(), to.host)];
      made_.sends.push_back({relay, std::ssize(made_.packed), to.count});
      made_.packed.insert(made_.packed.end(), entries_.sent.begin() + to.first, entries_.sent.begin() + to.first + to.count);
    }
    for (const Halo::Peer& peer : halo_.to) {
      if (!is_here(peer.rank)) continue;
      made_.sends.push_back({peer.rank, std::ssize(made_.packed), peer.count});
      made_.packed.insert(made_.packed.end(), halo_.sent.begin() + peer.first, halo_.sent.begin() + peer.first + peer.count);
    }
    for (const Halo::Peer& peer : halo_.from)
      if (is_here(peer.rank)) made_.receives.push_back({peer.rank, halo_.first_received() + peer.first, peer.count});
    for (int owner = 0; owner < communicator_.size(); ++owner) {
      const std::int64_t count = is_here(owner) ? 0 : entries_.got[static_cast<std::size_t>(owner)];
      if (count == 0 || own()[relay_place(owner, mine_)] != communicator_.rank()) continue;
      made_.arrivals.push_back({owner, made_.arrived, count});
      made_.arrived += count;
    }
    if (made_.arrived > std::numeric_limits<std::int32_t>::max())
      throw Error(ErrorKind::resources,
                  fmt::format("this host gets {} entries of x from a rank, more than 2^31 - 1; use halo",
                              human_count(made_.arrived)));
  }

  /// Tells the relays which entries this rank needs, owner by owner.
  void plan_second_step() {
    const std::size_t places = own().size();
    std::vector<std::vector<std::int64_t>> counts(places);   // of each owner that has entries for this host
    std::vector<std::vector<std::int32_t>> numbers(places);  // of the entries of all these owners
    std::vector<std::int64_t> needed(static_cast<std::size_t>(communicator_.size()));
    for (const Halo::Peer& peer : halo_.from) {
      if (is_here(peer.rank)) continue;
      needed[static_cast<std::size_t>(peer.rank)] = peer.count;
      const std::size_t place = relay_place(peer.rank, mine_);
      numbers[place].insert(numbers[place].end(), entries_.numbers.begin() + peer.first,
                            entries_.numbers.begin() + peer.first + peer.count);
      made_.takes.push_back({own()[place], halo_.first_received() + peer.first, peer.count});
    }
    for (int owner = 0; owner < communicator_.size(); ++owner)
      if (!is_here(owner) && entries_.got[static_cast<std::size_t>(owner)] > 0)
        counts[relay_place(owner, mine_)].push_back(needed[static_cast<std::size_t>(owner)]);
    const auto asked =
        exchange_on_host(communicator_, own(), counts, std::vector<std::size_t>(places, made_.arrivals.size()), kCountTag);
    std::vector<std::size_t> totals;
    for (const std::vector<std::int64_t>& of_rank : asked) {
      std::int64_t total = 0;
      for (const std::int64_t count : of_rank) total += count;
      totals.push_back(static_cast<std::size_t>(total));
    }
    const auto wanted = exchange_on_host(communicator_, own(), numbers, totals, kNumberTag);
    for (std::size_t place = 0; place < places; ++place) {
      std::size_t next = 0;
      for (std::size_t i = 0; i < made_.arrivals.size(); ++i) {
        const std::int64_t count = asked[place][i];
        if (count == 0) continue;
        made_.passes.push_back({own()[place], std::ssize(made_.spread), count});
        for (std::int64_t k = 0; k < count; ++k)
          made_.spread.push_back(static_cast<std::int32_t>(made_.arrivals[i].first + wanted[place][next++]));
      }
    }
  }

  Communicator& communicator_;
  const Halo& halo_;
  DistinctEntries entries_;
  std::vector<std::vector<int>> hosts_;
  int mine_;
  Relays made_;
};

class RelayedTwoLevel final : public Exchange {
 public:
  RelayedTwoLevel(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map, const Relays& relays)
      : Exchange(context, std::move(map)),
        communicator_(context.communicator),
        nccl_(context.nccl),
        packed_count_(std::ssize(relays.packed)),
        spread_count_(std::ssize(relays.spread)),
        x_(context.device, bytes_of(length())),
        packed_(context.device, bytes_of(packed_count_)),
        arrived_(context.device, bytes_of(relays.arrived)),
        spread_(context.device, bytes_of(spread_count_)),
        packed_places_(context.device, relays.packed.size() * sizeof(std::int32_t)),
        spread_places_(context.device, relays.spread.size() * sizeof(std::int32_t)) {
    const auto part_of = [&](const Buffer& buffer, const Part& part) { return buffer.as<char>() + bytes_of(part.first); };
    for (const Part& part : relays.sends) sends_.push_back({part.rank, part_of(packed_, part), bytes_of(part.count)});
    for (const Part& part : relays.receives) receives_.push_back({part.rank, part_of(x_, part), bytes_of(part.count)});
    for (const Part& part : relays.arrivals) receives_.push_back({part.rank, part_of(arrived_, part), bytes_of(part.count)});
    std::vector<Part> for_this_rank;
    for (const Part& part : relays.passes) {
      if (part.rank == communicator_.rank()) for_this_rank.push_back(part);
      else passes_.push_back({part.rank, part_of(spread_, part), bytes_of(part.count)});
    }
    auto next = for_this_rank.begin();
    for (const Part& part : relays.takes) {
      if (part.rank != communicator_.rank()) takes_.push_back({part.rank, part_of(x_, part), bytes_of(part.count)});
      else copies_.push_back({(next++)->first, part.first, part.count});
    }
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, x_.bytes(), stream);
    copy_to_device(packed_places_.data(), relays.packed.data(), packed_places_.bytes(), stream);
    copy_to_device(spread_places_.data(), relays.spread.data(), spread_places_.bytes(), stream);
    stream.synchronize();
  }

  /// Collective: NCCL connects the ranks now, where a deadline holds, instead of while a graph is recorded.
  void connect(const ExchangeContext& context) {
    all_ = sum_between_hosts(context, map(), sent_to_other_hosts());
    if (nccl_ == nullptr) return;
    first_step_ = nccl_->next_transfer(), second_step_ = nccl_->next_transfer();
    Stream stream(x_.device());
    start(stream);
    wait(stream);
  }

  std::string_view name() const override { return kTwoLevelExchange.name; }
  void* x() const override { return x_.data(); }
  void start(Stream& stream) override {
    gather_entries(entry_bytes(), packed_count_, packed_places_.as<std::int32_t>(), x_.data(), packed_.data(), stream);
    if (nccl_ == nullptr) {
      transfer_ = communicator_.start(sends_, receives_, kTag);
      return;
    }
    nccl_->transfer(first_step_, sends_, receives_, stream);
    spread(stream);
    nccl_->transfer(second_step_, passes_, takes_, stream);
  }
  void finish(Stream& stream) override {
    if (nccl_ != nullptr) return;
    communicator_.finish(transfer_);
    spread(stream);
    transfer_ = communicator_.start(passes_, takes_, kTag);
    communicator_.finish(transfer_);
  }
  void wait(Stream& stream) override { nccl_ != nullptr ? nccl_->wait(stream, "exchange of x") : stream.synchronize(); }

  Communicator::Sent sent_to_other_hosts() const override {
    Communicator::Sent sent;
    for (const Transfer::Outgoing& message : sends_) {
      if (communicator_.host_of(message.to) == communicator_.host_of(communicator_.rank())) continue;
      ++sent.messages, sent.bytes += static_cast<std::int64_t>(message.bytes);
    }
    return sent;
  }
  std::int64_t device_bytes() const override {
    return static_cast<std::int64_t>(x_.bytes() + packed_.bytes() + arrived_.bytes() + spread_.bytes() +
                                     packed_places_.bytes() + spread_places_.bytes());
  }

 private:
  /// Part of x that this rank takes from what has arrived at itself.
  struct Copy {
    std::int64_t from, to, count;  ///< `from`: in the list of spread entries
  };

  void spread(Stream& stream) {
    gather_entries(entry_bytes(), spread_count_, spread_places_.as<std::int32_t>(), arrived_.data(), spread_.data(), stream);
    for (const Copy& copy : copies_)
      copy_on_device(x_.as<char>() + bytes_of(copy.to), spread_.as<char>() + bytes_of(copy.from), bytes_of(copy.count),
                     stream);
  }
  std::string how() const override {
    return fmt::format("{} between and within {} hosts; {}", nccl_ != nullptr ? "NCCL " + nccl_version() : "MPI",
                       communicator_.hosts(), text_of(all_));
  }

  Communicator& communicator_;
  NcclCommunicator* nccl_;
  std::int64_t packed_count_, spread_count_;
  Buffer x_, packed_, arrived_, spread_, packed_places_, spread_places_;
  std::vector<Transfer::Outgoing> sends_, passes_;
  std::vector<Transfer::Incoming> receives_, takes_;
  std::vector<Copy> copies_;
  Transfer transfer_;
  BetweenHosts all_;
  int first_step_ = 0, second_step_ = 0;
};

}  // namespace

std::int64_t held_by_two_level_relays(Communicator& communicator, const ColumnMap& map) {
  const Relays relays = RelayPlanner(communicator, map.halo()).plan();
  return map.length() + std::ssize(relays.packed) + relays.arrived + std::ssize(relays.spread);
}

std::unique_ptr<Exchange> make_two_level_by_relays(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map) {
  if (context.device.backend == Backend::cuda && context.nccl == nullptr)
    throw Error(ErrorKind::internal, "an exchange between GPUs was made without NCCL");
  const Relays relays = RelayPlanner(context.communicator, map->halo()).plan();
  auto exchange = context.communicator.run_agreed([&] {
    context.require_room(map->length() + std::ssize(relays.packed) + relays.arrived + std::ssize(relays.spread),
                         "x, its halo and what is passed on");
    return std::make_unique<RelayedTwoLevel>(context, std::move(map), relays);
  });
  exchange->connect(context);
  return exchange;
}

}  // namespace shardmat
