// Halo through MPI: what others own follows the own entries in one vector, received in place.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "comm/exchange_list.h"
#include "comm/halo.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

constexpr int kTag = 22;

class HostHalo final : public Exchange {
 public:
  HostHalo(const ExchangeContext& context, std::int64_t own, Halo halo, const std::string& why)
      : Exchange(own + std::ssize(halo.entries)),
        communicator_(context.communicator),
        type_(context.type),
        own_(own),
        halo_(std::move(halo)),
        why_(fmt::format("{}; MPI, from {} and to {} ranks", why, halo_.from.size(), halo_.to.size())),
        x_(context.device, bytes_of(length())),
        packed_(context.device, bytes_of(std::ssize(halo_.sent))) {
    Stream stream(context.device);
    fill_bytes(x_.data(), 0, x_.bytes(), stream);
    for (const Halo::Peer& peer : halo_.to)
      sends_.push_back({peer.rank, packed_.as<char>() + bytes_of(peer.first), bytes_of(peer.count)});
    for (const Halo::Peer& peer : halo_.from)
      receives_.push_back({peer.rank, x_.as<char>() + bytes_of(own_ + peer.first), bytes_of(peer.count)});
  }

  std::string_view name() const override { return "halo"; }
  std::string why() const override { return why_; }
  void* local_x() override { return x_.data(); }
  const void* x() const override { return x_.data(); }
  void start(Stream&) override {
    dispatch(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = x_.as<T>();
      T* to = packed_.as<T>();
      parallel_ranges(std::ssize(halo_.sent), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) to[i] = from[halo_.sent[static_cast<std::size_t>(i)]];
      });
    });
    transfer_ = communicator_.start(sends_, receives_, kTag);
  }
  void finish(Stream&) override { communicator_.finish(transfer_); }
  bool capturable() const override { return true; }  // a host graph replays the function
  void wait(Stream& stream) override { stream.synchronize(); }
  std::int64_t bytes_received() const override { return static_cast<std::int64_t>(bytes_of(std::ssize(halo_.entries))); }

 private:
  std::size_t bytes_of(std::int64_t entries) const { return static_cast<std::size_t>(entries) * size_of(type_); }

  Communicator& communicator_;
  ValueType type_;
  std::int64_t own_;
  Halo halo_;
  std::string why_;
  Buffer x_, packed_;
  std::vector<Communicator::Transfer::Outgoing> sends_;
  std::vector<Communicator::Transfer::Incoming> receives_;
  Communicator::Transfer transfer_;
};

}  // namespace

std::unique_ptr<Exchange> make_host_halo(const ExchangeContext& context, const XParts& parts,
                                         std::span<std::int64_t> columns, const std::string& why) {
  Communicator& communicator = context.communicator;
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const std::int64_t begin = parts.starts[rank], end = parts.starts[rank + 1], own = end - begin;
  std::vector<std::int32_t> places;
  std::vector<std::int64_t> needed = communicator.together([&] {
    if (context.device.backend != Backend::host)
      throw Error(ErrorKind::usage, "exchange 'halo' is for the host backend; use --exchange allgather on GPUs");
    require_host_memory(8 * static_cast<std::int64_t>(columns.size()), "finding the columns that other ranks own");
    std::vector<std::int64_t> others;
    for (const std::int64_t column : columns)
      if (column < begin || column >= end) others.push_back(column);
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    const std::int64_t length = own + std::ssize(others);
    if (length > std::numeric_limits<std::int32_t>::max())
      throw Error(ErrorKind::resources, fmt::format("this rank's rows need {} entries of x, more than 2^31 - 1; use more ranks",
                                                    human_count(length)));
    require_memory(context.device, (length + own) * static_cast<std::int64_t>(size_of(context.type)), "x and its halo");
    places.resize(parts.order.size());
    for (std::size_t i = 0; i < parts.order.size(); ++i)
      places[static_cast<std::size_t>(parts.order[i])] = static_cast<std::int32_t>(i);
    return others;
  });
  Halo halo = make_halo(communicator, parts.starts, std::move(needed), places);
  parallel_ranges(static_cast<std::int64_t>(columns.size()), 1 << 16, [&](std::int64_t first, std::int64_t last) {
    for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
      std::int64_t& column = columns[k];
      if (column >= begin && column < end)
        column = places.empty() ? column - begin : places[static_cast<std::size_t>(column - begin)];
      else
        column = own + (std::lower_bound(halo.entries.begin(), halo.entries.end(), column) - halo.entries.begin());
    }
  });
  return communicator.together(
      [&]() -> std::unique_ptr<Exchange> { return std::make_unique<HostHalo>(context, own, std::move(halo), why); });
}

}  // namespace shardmat
