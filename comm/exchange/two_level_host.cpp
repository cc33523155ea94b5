// two_level on the host: the ranks of a host share memory.
//
//   owner     packs, for each host, what its ranks need ─► memory of its host
//   sender    a rank of the host ───── one message for each pair of hosts ─────► memory of the other host
//   reader    copies what it needs from its host's memory, also what ranks of its own host have packed
//
// So each entry crosses the network once for each host that needs it, not once for each rank. Ranks of a host meet by
// counters in the shared memory, which has two places for everything: a fast rank packs while slow ones still read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/exchange/distinct_entries.h"
#include "comm/exchange/exchange_list.h"
#include "comm/exchange/two_level.h"
#include "comm/shared_gpu/peer_process.h"
#include "comm/shared_gpu/shared_memory.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/vector.h"

namespace shardmat {
namespace {

constexpr int kTag = 29, kCountTag = 30;
constexpr std::size_t kPlaces = 2;
/// Larger messages are divided among the ranks of the host: one core seldom fills the network. Not measured on a network.
constexpr std::int64_t kLargeMessage = 256 << 10;
constexpr const char* kWhat = "exchange of x";

using Count = std::atomic<std::uint64_t>;
static_assert(Count::is_always_lock_free);

/// What one rank of the host has done: the number of the exchange. Written by that rank.
struct alignas(64) Seat {
  Count packed_for_others{0}, packed_for_host{0}, received{0};
};

/// The head of the shared memory, followed by the seats.
struct alignas(64) Board {
  PeerProcess maker;  ///< first, see share_memory()
  /// Exchanges that ranks of the host have finished with each place, over all these ranks.
  alignas(64) Count finished[kPlaces] = {};
};

/// A part of a message between two hosts: entries [first, first + count) of those that one has for the other.
struct Part {
  int sender, receiver;
  std::int64_t first, count;
};

/// The same on both hosts. The messages with several hosts are spread over the ranks.
std::vector<Part> parts_of_message(std::int64_t entries, std::size_t entry_bytes, const std::vector<int>& senders,
                                   const std::vector<int>& receivers, int from_host, int to_host) {
  std::vector<Part> parts;
  if (entries == 0) return parts;
  const std::int64_t large = entries * static_cast<std::int64_t>(entry_bytes) / kLargeMessage + 1,
                     count = std::min({large, entries, std::ssize(senders), std::ssize(receivers)});
  const auto in_turn = [](const std::vector<int>& ranks, std::int64_t i) {
    return ranks[static_cast<std::size_t>(i % std::ssize(ranks))];
  };
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t first = entries * k / count, end = entries * (k + 1) / count;
    parts.push_back({in_turn(senders, to_host + k), in_turn(receivers, from_host + k), first, end - first});
  }
  return parts;
}

/// Where everything lies in one place of the shared memory of this host, in entries, and who sends it.
class HostLayout {
 public:
  /// Collective.
  HostLayout(Communicator& communicator, const DistinctEntries& entries)
      : host_(communicator.host_of(communicator.rank())), ranks_(ranks_of_hosts(communicator)), got_(entries.got) {
    const auto hosts = static_cast<std::size_t>(communicator.hosts());
    std::vector<std::int64_t> mine(hosts);
    for (const DistinctEntries::Host& to : entries.to) mine[static_cast<std::size_t>(to.host)] = to.count;
    given_.assign(own().size() * hosts, 0);
    std::vector<Communicator::Transfer::Outgoing> sends;
    std::vector<Communicator::Transfer::Incoming> receives;
    for (std::size_t i = 0; i < own().size(); ++i) {
      if (own()[i] == communicator.rank()) place_ = i;
      sends.push_back({own()[i], mine.data(), hosts * sizeof(std::int64_t)});
      receives.push_back({own()[i], given_.data() + i * hosts, hosts * sizeof(std::int64_t)});
    }
    Communicator::Transfer transfer = communicator.start(sends, receives, kCountTag);
    communicator.finish(transfer);
    const auto append = [&](std::int64_t count) { return std::exchange(length_, length_ + count); };
    for (std::size_t host = 0; host < hosts; ++host) outgoing_.push_back(append(given_to(static_cast<int>(host))));
    for (std::size_t host = 0; host < hosts; ++host)
      arriving_.push_back(append(static_cast<int>(host) == host_ ? 0 : got_from(static_cast<int>(host))));
  }

  int host() const { return host_; }
  int hosts() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks(int host) const { return ranks_[static_cast<std::size_t>(host)]; }
  const std::vector<int>& own() const { return ranks(host_); }
  std::size_t place() const { return place_; }  ///< of this rank in own()
  std::int64_t length() const { return length_; }

  /// Entries that rank own()[place] has for a host.
  std::int64_t given(std::size_t place, int host) const {
    return given_[place * ranks_.size() + static_cast<std::size_t>(host)];
  }
  std::int64_t given_to(int host) const { return first_given(own().size(), host); }
  std::int64_t got_from(int host) const {
    std::int64_t entries = 0;
    for (const int rank : ranks(host)) entries += got_[static_cast<std::size_t>(rank)];
    return entries;
  }
  std::int64_t outgoing(int host) const { return outgoing_[static_cast<std::size_t>(host)]; }
  std::int64_t arriving(int host) const { return arriving_[static_cast<std::size_t>(host)]; }

  /// Where this rank packs what it has for a host.
  std::int64_t packed(int host) const { return outgoing(host) + first_given(place_, host); }
  /// Where the entries begin that each rank has for this host.
  std::vector<std::int64_t> begins() const {
    std::vector<std::int64_t> begins(got_.size());
    for (int host = 0; host < hosts(); ++host) {
      std::int64_t next = host == host_ ? outgoing(host) : arriving(host);
      for (const int rank : ranks(host))
        begins[static_cast<std::size_t>(rank)] = std::exchange(next, next + got_[static_cast<std::size_t>(rank)]);
    }
    return begins;
  }

 private:
  /// Entries that the ranks before own()[place] have for a host.
  std::int64_t first_given(std::size_t place, int host) const {
    std::int64_t entries = 0;
    for (std::size_t i = 0; i < place; ++i) entries += given(i, host);
    return entries;
  }

  int host_;
  std::size_t place_ = 0;
  std::vector<std::vector<int>> ranks_;
  std::vector<std::int64_t> got_, given_;  ///< given_: [rank of own()][host]
  std::vector<std::int64_t> outgoing_, arriving_;
  std::int64_t length_ = 0;
};

class HostTwoLevel final : public Exchange {
 public:
  HostTwoLevel(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map, DistinctEntries entries,
               const HostLayout& layout, std::unique_ptr<SharedMemory> memory)
      : Exchange(context, std::move(map)),
        communicator_(context.communicator),
        layout_length_(layout.length()),
        ranks_(std::ssize(layout.own())),
        memory_(std::move(memory)),
        board_(static_cast<Board*>(memory_->head())),
        mine_(&seat(layout.place())),
        body_(memory_->body(kPlaces * bytes_of(layout.length()))),
        x_(context.device, bytes_of(length())),
        sent_(std::move(entries.sent)) {
    for (const DistinctEntries::Host& to : entries.to)
      (to.host == layout.host() ? for_host_ : for_others_)
          .push_back({sent_.data() + to.first, to.count, layout.packed(to.host)});
    find_sources(layout, entries.numbers);
    find_messages(layout);
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, x_.bytes(), stream);
  }

  /// Collective.
  void count_between_hosts(const ExchangeContext& context) {
    all_ = sum_between_hosts(context, map(), sent_to_other_hosts());
  }

  std::string_view name() const override { return kTwoLevelExchange.name; }
  void* x() const override { return x_.data(); }

  void start(Stream& stream) override {
    ++round_;
    const std::size_t place = round_ % kPlaces;
    const std::uint64_t finished = (round_ - 1) / kPlaces * static_cast<std::uint64_t>(ranks_);
    communicator_.wait_until([&] { return board_->finished[place].load(std::memory_order_acquire) >= finished; }, kWhat);
    incoming_ = communicator_.start({}, receives_[place], kTag);
    pack(for_others_, stream);
    mine_->packed_for_others.store(round_, std::memory_order_release);
    if (!sends_[place].empty()) {
      wait_for(packed_for_others_);
      outgoing_ = communicator_.start(sends_[place], {}, kTag);
    }
    pack(for_host_, stream);
    mine_->packed_for_host.store(round_, std::memory_order_release);
  }

  void finish(Stream& stream) override {
    wait_for(packed_for_host_);
    copy(from_host_, stream);
    wait_for(received_);
    copy(from_others_, stream);
    communicator_.wait_until([&] { return move_messages(); }, kWhat);
    board_->finished[round_ % kPlaces].fetch_add(1, std::memory_order_acq_rel);
  }
  void wait(Stream& stream) override { stream.synchronize(); }

  Communicator::Sent sent_to_other_hosts() const override {
    Communicator::Sent sent;
    for (const auto& message : sends_.front()) ++sent.messages, sent.bytes += static_cast<std::int64_t>(message.bytes);
    return sent;
  }
  std::int64_t device_bytes() const override {
    const std::int64_t shared = static_cast<std::int64_t>(kPlaces * bytes_of(layout_length_)) / ranks_;
    return static_cast<std::int64_t>(x_.bytes() + (sent_.size() + places_.size()) * sizeof(std::int32_t)) + shared;
  }

 private:
  /// Own entries that are packed at `to` in the shared memory.
  struct Packed {
    const std::int32_t* places;
    std::int64_t count, to;
  };
  /// Received entries [first, first + count) in a row.
  struct Run {
    std::int64_t first, count;
  };

  const Halo& halo() const { return map().halo(); }
  Seat& seat(std::size_t place) const { return reinterpret_cast<Seat*>(board_ + 1)[place]; }
  std::byte* shared(std::size_t place, std::int64_t entry) const {
    return body_ + place * bytes_of(layout_length_) + bytes_of(entry);
  }

  /// Where the received entries lie in the shared memory, and whose packing this rank waits for.
  void find_sources(const HostLayout& layout, const std::vector<std::int32_t>& numbers) {
    const std::vector<std::int64_t> begins = layout.begins();
    places_.resize(numbers.size());
    for (const Halo::Peer& peer : halo().from) {
      const std::int64_t begin = begins[static_cast<std::size_t>(peer.rank)];
      for (auto i = static_cast<std::size_t>(peer.first); i < static_cast<std::size_t>(peer.first + peer.count); ++i)
        places_[i] = static_cast<std::int32_t>(begin + numbers[i]);
      const bool of_host = communicator_.host_of(peer.rank) == layout.host();
      if (of_host) {
        const auto at = std::lower_bound(layout.own().begin(), layout.own().end(), peer.rank) - layout.own().begin();
        packed_for_host_.push_back(&seat(static_cast<std::size_t>(at)).packed_for_host);
      }
      std::vector<Run>& runs = of_host ? from_host_ : from_others_;
      if (!runs.empty() && runs.back().first + runs.back().count == peer.first) runs.back().count += peer.count;
      else runs.push_back({peer.first, peer.count});
    }
  }

  /// The messages that this rank sends and receives, and the ranks of its host that it waits for.
  void find_messages(const HostLayout& layout) {
    std::vector<bool> needed(static_cast<std::size_t>(layout.hosts())), receive(layout.own().size()), pack(receive);
    for (const Halo::Peer& peer : halo().from) needed[static_cast<std::size_t>(communicator_.host_of(peer.rank))] = true;
    const int rank = communicator_.rank();
    for (int host = 0; host < layout.hosts(); ++host) {
      if (host == layout.host()) continue;
      for (const Part& part :
           parts_of_message(layout.got_from(host), entry_bytes(), layout.ranks(host), layout.own(), host, layout.host())) {
        const auto at = std::lower_bound(layout.own().begin(), layout.own().end(), part.receiver) - layout.own().begin();
        if (needed[static_cast<std::size_t>(host)]) receive[static_cast<std::size_t>(at)] = true;
        if (part.receiver != rank) continue;
        for (std::size_t place = 0; place < kPlaces; ++place)
          receives_[place].push_back({part.sender, shared(place, layout.arriving(host) + part.first), bytes_of(part.count)});
      }
      for (const Part& part :
           parts_of_message(layout.given_to(host), entry_bytes(), layout.own(), layout.ranks(host), layout.host(), host)) {
        if (part.sender != rank) continue;
        for (std::size_t i = 0; i < pack.size(); ++i)
          if (layout.given(i, host) > 0) pack[i] = true;
        for (std::size_t place = 0; place < kPlaces; ++place)
          sends_[place].push_back({part.receiver, shared(place, layout.outgoing(host) + part.first), bytes_of(part.count)});
      }
    }
    for (std::size_t i = 0; i < pack.size(); ++i) {
      if (receive[i]) received_.push_back(&seat(i).received);
      if (pack[i]) packed_for_others_.push_back(&seat(i).packed_for_others);
    }
  }

  void pack(const std::vector<Packed>& all, Stream& stream) {
    for (const Packed& some : all)
      gather_entries(entry_bytes(), some.count, some.places, x_.data(), shared(round_ % kPlaces, some.to), stream);
  }
  void copy(const std::vector<Run>& runs, Stream& stream) {
    for (const Run& run : runs)
      gather_entries(entry_bytes(), run.count, places_.data() + run.first, shared(round_ % kPlaces, 0),
                     x_.as<char>() + bytes_of(halo().first_received() + run.first), stream);
  }

  /// Lets MPI move this rank's messages, and says which have come. True if all have come and gone.
  bool move_messages() {
    if (mine_->received.load(std::memory_order_relaxed) != round_) {
      if (!communicator_.finish_if_done(incoming_)) return communicator_.finish_if_done(outgoing_), false;
      mine_->received.store(round_, std::memory_order_release);
    }
    return communicator_.finish_if_done(outgoing_);
  }
  /// Other hosts may wait for this rank's messages while it waits for ranks of its host.
  void wait_for(const std::vector<const Count*>& counts) {
    auto next = counts.begin();
    communicator_.wait_until(
        [&] {
          move_messages();
          while (next != counts.end() && (*next)->load(std::memory_order_acquire) >= round_) ++next;
          return next == counts.end();
        },
        kWhat);
  }

  std::string how() const override {
    return fmt::format("MPI between {} hosts, shared memory within; {}", communicator_.hosts(), text_of(all_));
  }

  Communicator& communicator_;
  std::int64_t layout_length_, ranks_;
  std::unique_ptr<SharedMemory> memory_;
  Board* board_;
  Seat* mine_;
  std::byte* body_;
  Buffer x_;
  std::vector<std::int32_t> sent_, places_;
  std::vector<Packed> for_others_, for_host_;
  std::vector<Run> from_others_, from_host_;
  std::vector<const Count*> packed_for_others_, packed_for_host_, received_;
  std::array<std::vector<Communicator::Transfer::Outgoing>, kPlaces> sends_;
  std::array<std::vector<Communicator::Transfer::Incoming>, kPlaces> receives_;
  Communicator::Transfer incoming_, outgoing_;
  BetweenHosts all_;
  std::uint64_t round_ = 0;  ///< number of this exchange, from 1
};

}  // namespace

/// What is packed and what arrives lies in memory of the host, to which each rank gives a share.
std::int64_t held_by_two_level_of_host(const ColumnMap& map) {
  return map.length() + static_cast<std::int64_t>(kPlaces) * (std::ssize(map.halo().sent) + map.received());
}

std::unique_ptr<Exchange> make_two_level_of_host(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map) {
  Communicator& communicator = context.communicator;
  DistinctEntries entries = find_distinct_entries(communicator, map->halo());
  const HostLayout layout(communicator, entries);
  const std::size_t seats = layout.own().size(), head = sizeof(Board) + seats * sizeof(Seat);
  auto memory = share_memory(communicator, layout.own().front(), head, [&](void* place) {
    auto* const board = new (place) Board;
    for (std::size_t i = 0; i < seats; ++i) new (reinterpret_cast<Seat*>(board + 1) + i) Seat;
  });
  communicator.run_agreed([&] {
    if (layout.length() > std::numeric_limits<std::int32_t>::max())
      throw Error(ErrorKind::resources,
                  fmt::format("the ranks of this host exchange {} entries of x, more than 2^31 - 1; use halo",
                              human_count(layout.length())));
    context.require_room(map->length(), "x and its halo");
    const std::size_t bytes = kPlaces * static_cast<std::size_t>(layout.length()) * context.entry_bytes();
    if (layout.place() == 0) memory->reserve(bytes, "what the ranks of a host exchange");
  });
  auto exchange = communicator.run_agreed([&] {
    return std::make_unique<HostTwoLevel>(context, std::move(map), std::move(entries), layout, std::move(memory));
  });
  exchange->count_between_hosts(context);
  return exchange;
}

}  // namespace shardmat
