#include "runtime/matrix/plan_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "kernels/base/core_wait.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/shortened.h"
#include "kernels/base/timer.h"
#include "kernels/matrix/row_release.h"
#include "partition/files/atomic_file.h"
#include "partition/files/checksum.h"
#include "partition/files/json.h"
#include "partition/files/output_file.h"

#ifndef SHARDMAT_VERSION
#define SHARDMAT_VERSION "unknown"
#endif

namespace shardmat {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMostBytes = 1 << 20;  ///< of a remembered plan; all candidates take some kB

struct Remembered {
  std::string kernel, policy;
  double seconds = 0;          ///< of one product, then
  std::size_t candidates = 0;  ///< that were measured
};

/// Everything that a choice depends on.
ordered_json key_of(const CsrView& matrix, ValueType type, const PlanRequest& request, const PlanCache& cache,
                    Backend backend) {
  return {{"shardmat", SHARDMAT_VERSION},
          {"pattern", fmt::format("{:016x}", pattern_fingerprint(matrix))},
          {"device", cache.device_name},
          {"host_threads", backend == Backend::host ? thread_count() : 0},
          {"type", name(type)},
          {"right_hand_sides", 1},
          {"many_products", are_many(request.products)},
          {"reproducible", request.reproducible},
          {"same_bits", request.same_bits},
          {"symmetric", request.storage == StoredEntries::half}};
}

class Entry {
 public:
  Entry(const std::string& directory, ordered_json key) : key_(std::move(key)) {
    const std::string text = key_.dump();
    path_ = std::filesystem::path(directory) / "plans" / fmt::format("{:016x}.json", xxh64(text.data(), text.size()));
  }

  const std::filesystem::path& path() const { return path_; }

  /// What was remembered; nothing if there is no such file. Throws std::exception if it is damaged or of another matrix.
  std::optional<Remembered> read() const {
    std::error_code ignored;
    if (!std::filesystem::exists(path_, ignored)) return std::nullopt;
    const ordered_json json = read_json(path_, kMostBytes);
    const Remembered found{json.at("kernel"), json.at("policy"), json.at("seconds"), json.at("measurements").size()};
    if (json.at("key") != key_ || !std::isfinite(found.seconds) || found.seconds <= 0)
      throw Error(ErrorKind::input, "it belongs to something else");
    return found;
  }

  /// Throws std::exception if the file cannot be written.
  void write(const ChosenPlan& chosen) const {
    ordered_json measurements = ordered_json::array();
    for (const Measurement& m : chosen.measurements)
      measurements.push_back({{"kernel", m.kernel}, {"policy", m.policy}, {"seconds", m.seconds}});
    const ordered_json json{{"key", key_},
                            {"kernel", chosen.plan->kernel},
                            {"policy", chosen.plan->tunables()},
                            {"seconds", chosen.product_seconds},
                            {"measurements", measurements}};
    std::filesystem::create_directories(path_.parent_path());
    AtomicFile file(path_);
    file.require_file("a plan");
    OutputFile out(file);
    out.append(json.dump(2) + '\n');
    out.close();
    file.commit();
  }

 private:
  ordered_json key_;
  std::filesystem::path path_;
};

/// The remembered plan, ready to run; null with the reason in `trouble` if there is a file that does not help.
std::optional<ChosenPlan> recall(const Entry& entry, const CsrView& matrix, ValueType type, PlanRequest request,
                                 Stream& stream, const Timer& timer, std::string& trouble) {
  try {
    const std::optional<Remembered> found = entry.read();
    if (!found) return std::nullopt;
    const double seconds = timer.seconds();
    request.kernel = found->kernel;
    request.policy = found->policy;
    ChosenPlan chosen = choose_plan(matrix, type, request, stream);
    chosen.decision = Decision::remembered;
    chosen.why = fmt::format("remembered from {}, chosen from {} measured then", entry.path().string(), found->candidates);
    chosen.choosing_seconds = seconds;
    chosen.product_seconds = found->seconds;
    return chosen;
  } catch (const std::exception& e) {
    const auto* error = dynamic_cast<const Error*>(&e);
    if (error != nullptr && error->kind() == ErrorKind::internal) throw;
    if (matrix.release != nullptr && matrix.release->began())  // nothing is left to choose for
      throw Error(ErrorKind::input, fmt::format("the remembered plan {} does not run: {}. Delete it, or use no cache",
                                                entry.path().string(), shortened(e.what(), 400)));
    trouble = fmt::format("; {} was of no use: {}", entry.path().string(), shortened(e.what(), 400));
    return std::nullopt;
  }
}

}  // namespace

std::string default_cache_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string own = variable("SHARDMAT_CACHE_DIR"); !own.empty()) return own;
  if (const std::string caches = variable("XDG_CACHE_HOME"); !caches.empty()) return caches + "/shardmat";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/shardmat";
  return "";
}

std::uint64_t pattern_fingerprint(const CsrView& matrix) {
  constexpr std::int64_t kPieces = 128, kPiece = 16;
  const std::int64_t shape[] = {matrix.rows, matrix.cols, matrix.nnz()};
  std::uint64_t hash = xxh64(shape, sizeof(shape));
  const auto sample = [&](const ColumnView& all, std::int64_t first) {
    const auto size = static_cast<std::int64_t>(all.size());
    for (std::int64_t piece = 0; piece < kPieces && size > 0; ++piece) {
      const auto begin = static_cast<std::int64_t>(static_cast<double>(size) / kPieces * static_cast<double>(piece));
      std::array<std::int64_t, kPiece> some{};
      const auto count = static_cast<std::size_t>(std::min(kPiece, size - begin));
      for (std::size_t i = 0; i < count; ++i) some[i] = all[static_cast<std::size_t>(begin) + i] - first;
      hash = xxh64(some.data(), count * sizeof some[0], hash);
    }
  };
  sample(matrix.row_ptr, matrix.row_ptr[0]);
  sample(matrix.col_idx, 0);
  return hash;
}

ChosenPlan choose_remembered_plan(const CsrView& matrix, ValueType type, const PlanRequest& request, const PlanCache& cache,
                                  Stream& stream) {
  if (cache.directory.empty() || request.kernel != "auto" || !(request.measure || request.tune) || matrix.nnz() == 0)
    return choose_plan(matrix, type, request, stream);
  const Timer timer;
  const Entry entry(cache.directory, key_of(matrix, type, request, cache, stream.device().backend));
  std::string trouble;
  if (!request.tune)
    if (auto chosen = recall(entry, matrix, type, request, stream, timer, trouble)) return std::move(*chosen);
  const CoreWait wait;
  ChosenPlan chosen = choose_plan(matrix, type, request, stream);
  const double waited = stream.device().backend == Backend::host && thread_count() > 1 ? wait.share(thread_count()) : 0;
  if (chosen.decision == Decision::measured && waited > kBusyShare) {
    trouble += fmt::format("; not remembered: other processes had the cores for {:.0f} % of the time", 100 * waited);
  } else if (chosen.decision == Decision::measured) {
    try {
      entry.write(chosen);
    } catch (const std::exception& e) {
      trouble += fmt::format("; not remembered: {}", e.what());
    }
  }
  chosen.why += trouble;
  return chosen;
}

}  // namespace shardmat
