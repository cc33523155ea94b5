// The way of rows, and of what belongs to them, from one tiling of the rows over the ranks to another.
//
// Each rank has one range of rows in each tiling, so what goes from one rank to another is one run of items: nothing is
// packed or sorted, and the route costs a few bytes a rank. Everything moves through host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"

namespace shardmat {

class RangeRoute {
 public:
  struct Range {
    std::int64_t first = 0, count = 0;
  };

  /// Rows of every rank before and after. REQUIRES: both tile the same rows, in any order of the ranks. Not collective.
  RangeRoute(std::span<const Range> before, std::span<const Range> after, int rank);

  /// The same way for items of which row i has offsets[i + 1] - offsets[i]: `before` and `after` are the offsets of this
  /// rank's rows in each tiling. Not collective.
  RangeRoute of_items(std::span<const std::int64_t> before, std::span<const std::int64_t> after) const;

  /// Items of this rank before and after.
  std::int64_t given() const { return given_; }
  std::int64_t taken() const { return taken_; }

  /// `each` values of every item, in one message from rank to rank: given() · each come in, taken() · each come out.
  /// Collective; the same error on all ranks. Throws Error(internal) for another number of values.
  template <class T>
  HostVector<T> bring(std::span<const T> values, std::int64_t each, Communicator& communicator) const {
    return moved<T>({sends_, given_}, {receives_, taken_}, values, each, communicator);
  }
  /// The opposite: taken() · each values come in, given() · each come out.
  template <class T>
  HostVector<T> bring_back(std::span<const T> values, std::int64_t each, Communicator& communicator) const {
    return moved<T>({receives_, taken_}, {sends_, given_}, values, each, communicator);
  }

 private:
  /// Items [first, first + count) of this rank that go to a rank, or come from it.
  struct Run {
    int rank;
    std::int64_t first, count;
  };
  struct Side {
    std::span<const Run> runs;
    std::int64_t items;
  };
  struct Memory {
    const char* from;
    char* to;
    std::size_t item_bytes;
  };

  RangeRoute() = default;
  static void require_room(Side from, Side to, std::int64_t values, std::int64_t each, std::size_t value_bytes);
  static void move(Side from, Side to, Memory memory, Communicator& communicator);
  template <class T>
  static HostVector<T> moved(Side from, Side to, std::span<const T> values, std::int64_t each, Communicator& communicator) {
    static_assert(std::is_trivially_copyable_v<T>);
    HostVector<T> result;
    communicator.run_agreed([&] {
      require_room(from, to, std::ssize(values), each, sizeof(T));
      result.resize(static_cast<std::size_t>(to.items * each));
    });
    move(from, to,
         {reinterpret_cast<const char*>(values.data()), reinterpret_cast<char*>(result.data()),
          static_cast<std::size_t>(each) * sizeof(T)},
         communicator);
    return result;
  }

  std::vector<Run> sends_, receives_;
  std::int64_t given_ = 0, taken_ = 0;
};

}  // namespace shardmat
