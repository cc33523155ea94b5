// CalculiX: JOB.sti (stiffness) or JOB.mas (mass) of *FREQUENCY, SOLVER=MATRIXSTORAGE, with JOB.dof beside it. Heat transfer
// gives JOB.con (conductivity) and JOB.sph (specific heat), buckling JOB.str (stress stiffness).
//
//   JOB.sti    "row column value" a line, one triangle with the diagonal; indices begin with 1
//   JOB.dof    "node.dof" a line for each unknown
// The matrix is expanded. Unknowns are sorted by node, then degree of freedom; equal ones, as shells have them, keep their
// order.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "partition/readers/node_unknowns.h"
#include "partition/readers/reader_list.h"
#include "partition/readers/text_entries.h"
#include "partition/readers/text_numbers.h"

namespace shardmat {

UnknownList read_unknowns(const std::filesystem::path& path, const ReadLimits& limits) {
  const auto source = TextSource::open(path, limits);
  constexpr std::int64_t kShortest = 4;                                                // "1.1\n"
  constexpr std::int64_t kBytes = 2 * sizeof(NodeUnknown) + 2 * sizeof(std::int64_t);  // as read, sorted, order and places
  limits.require_memory(kBytes * (source->most_text_bytes() / kShortest + 1), path);
  UnknownList unknowns;
  LineCursor lines(*source);
  for (std::string_view line = lines.next(); !line.empty(); line = lines.next()) {
    const char* p = first_word(line.data());
    if (*p == '\n') continue;
    NodeUnknown one{};
    const char* const end = line.data() + line.size();
    const auto [behind, error] = std::from_chars(p, end, one.node);
    if (error == std::errc{} && *behind == '.' && one.node != 0) {
      const auto [last, wrong] = std::from_chars(behind + 1, end, one.dof);
      if (wrong == std::errc{} && one.dof >= 0 && *first_word(last) == '\n') {
        unknowns.push_back(one);
        continue;
      }
    }
    lines.fail(fmt::format("{} is no unknown; a .dof file of CalculiX has lines such as 12.3, node and degree of freedom",
                           matrix_market::quote(line.substr(0, line.size() - 1))));
  }
  source->file().require_unchanged();
  return unknowns;
}

namespace {

constexpr std::int64_t kMostOfEither = std::int64_t{1} << 58;

class Calculix final : public TextEntryFormat {
 public:
  Calculix(const std::filesystem::path& dof, const ReadLimits& limits, bool allow_nonfinite)
      : dof_(dof), allow_nonfinite_(allow_nonfinite) {
    const UnknownList unknowns = read_unknowns(dof, limits);
    std::vector<std::int64_t> order(unknowns.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    const auto at = [&](std::int64_t i) { return unknowns[static_cast<std::size_t>(i)]; };
    std::sort(order.begin(), order.end(),
              [&](std::int64_t a, std::int64_t b) { return std::pair(at(a), a) < std::pair(at(b), b); });
    auto sorted = std::make_shared<UnknownList>(unknowns.size());
    place_.resize(unknowns.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      (*sorted)[i] = at(order[i]);
      place_[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    }
    unknowns_ = std::move(sorted);
  }

  std::int64_t rows() const override { return std::ssize(place_); }
  std::int64_t cols() const override { return std::ssize(place_); }
  std::shared_ptr<const UnknownList> unknowns() const override { return unknowns_; }

  std::optional<TextEntry> entry_of(const char* line, bool with_value) const override {
    using namespace text_numbers;
    if (*first_word(line) == '\n') return std::nullopt;
    std::int64_t row = 0, col = 0;
    const char* p = parse_whole(line, "row", 1, kMostOfEither, row);
    p = parse_whole(p, "column", 1, kMostOfEither, col);
    if (std::max(row, col) > std::ssize(place_))
      throw LineFault{line, fmt::format("row {}, column {}: {} names only {} unknowns; take both files from one run. With "
                                        "cyclic symmetry the matrix has two rows for an unknown, and is not read",
                                        row, col, dof_.filename().string(), place_.size())};
    TextEntry entry;
    entry.row = place_[static_cast<std::size_t>(row - 1)], entry.col = place_[static_cast<std::size_t>(col - 1)];
    entry.mirrored = row != col;
    if (with_value) require_line_end(parse_real(p, allow_nonfinite_, entry.value));
    return entry;
  }

 private:
  std::filesystem::path dof_;
  bool allow_nonfinite_;
  std::vector<std::int64_t> place_;              ///< of each unknown of the file
  std::shared_ptr<const UnknownList> unknowns_;  ///< sorted
};

}  // namespace

bool accepts_calculix(const std::filesystem::path& path) {
  constexpr std::string_view kSuffixes[] = {".sti", ".mas", ".con", ".sph", ".str"};
  return std::find(std::begin(kSuffixes), std::end(kSuffixes), path.extension().string()) != std::end(kSuffixes);
}

std::unique_ptr<EntryReader> open_calculix(const std::filesystem::path& path, const ReadOptions& options,
                                           const ReadLimits& limits) {
  auto source = TextSource::open(path, limits);
  std::filesystem::path dof = path;
  dof.replace_extension(".dof");
  std::error_code ignored;
  if (!std::filesystem::exists(dof, ignored))
    throw Error(ErrorKind::input,
                fmt::format("{}: {} is not beside it, which names the unknowns; copy both files that CalculiX "
                            "wrote",
                            path.string(), dof.filename().string()));
  return make_text_entries(std::move(source), std::make_unique<Calculix>(dof, limits, options.allow_nonfinite), limits);
}

}  // namespace shardmat
