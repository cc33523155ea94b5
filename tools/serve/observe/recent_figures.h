// What the service did in each of the last seconds, for pictures: Prometheus's figures (metrics.h) only ever grow.
//
// Memory is bounded: a matrix takes some 80 kB if it is used in each second, and 6 kB more for each kind of request; one
// that is idle takes none.
//
// Threads: one at a time. Times are seconds of the steady clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace shardmat::serve {

/// Counts times of 1 µs to 100 s; ten ranges for each factor of ten.
class TimeCounts {
 public:
  void add(double seconds);
  void add(const TimeCounts& other);
  /// The time that the share `p` of all does not exceed, about 10 % exact; nothing if none was counted.
  std::optional<double> quantile(double p) const;

 private:
  static constexpr std::size_t kRanges = 81;
  std::array<std::uint16_t, kRanges> counts_{};
};

/// Sums over some seconds.
struct Activity {
  std::uint64_t requests = 0, refused = 0;  ///< of all kinds
  std::uint64_t products = 0, columns = 0;  ///< of the ranks
  std::uint64_t waiting = 0;                ///< requests, when that was looked at last
  double product_seconds = 0;               ///< without copies
  double bytes = 0;                         ///< that the products must move at least, on all ranks
  TimeCounts times;                         ///< from the header of a request to the end of its reply

  void add(const Activity& other);
};

/// Requests of one kind over some seconds.
struct KindActivity {
  std::uint64_t requests = 0, refused = 0;
  TimeCounts times;  ///< of requests as in Activity; of jobs from their arrival to their end

  void add(const KindActivity& other);
};

class RecentFigures {
 public:
  static constexpr std::int64_t kSeconds = 300;
  static constexpr std::size_t kMostMatrices = 200, kMostClients = 200;  ///< further ones are not counted

  /// `kind`: one of few words. `matrix`: empty for what is of no matrix.
  void add_request(const std::string& matrix, const std::string& kind, bool refused, double seconds, double now);
  void add_product(const std::string& matrix, std::int64_t columns, double seconds, double bytes, double now);
  void set_waiting(const std::string& matrix, std::uint64_t requests, double now);
  /// Time of the ranks that a client had.
  void add_client(const std::string& client, double seconds, double now);

  using MayUse = std::function<bool(const std::string& matrix)>;
  /// Of the seconds from `first` to before `end`, over all matrices that `may_use` allows.
  Activity over(std::int64_t first, std::int64_t end, const MayUse& may_use) const;
  Activity over(std::int64_t first, std::int64_t end, const std::string& matrix) const;
  /// Of the last kSeconds, by kind, over all matrices that `may_use` allows.
  std::map<std::string, KindActivity> kinds(double now, const MayUse& may_use) const;
  /// Of the last kSeconds, by client.
  std::map<std::string, double> clients(double now) const;

 private:
  template <class What>
  using Past = std::deque<std::pair<std::int64_t, What>>;  ///< by step of time, ascending; only those with something
  template <class What>
  static What* at(std::map<std::string, Past<What>>& all, std::size_t most, const std::string& name, double now,
                  std::int64_t step_seconds = 1);

  std::map<std::string, Past<Activity>> matrices_;
  static constexpr std::int64_t kKindSeconds = 10;                          ///< in one step
  std::map<std::string, Past<std::map<std::string, KindActivity>>> kinds_;  ///< by matrix
  std::map<std::string, Past<double>> clients_;
};

}  // namespace shardmat::serve
