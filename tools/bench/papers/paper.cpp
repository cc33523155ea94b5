#include "tools/bench/papers/paper.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/timer.h"
#include "kernels/choose/registry.h"

namespace shardmat::tools {
namespace {

constexpr int kBlockSizes[] = {64, 128, 256, 512};

}  // namespace

std::vector<Cell> Subject::cells() const {
  return {Cell::word(matrix.name), Cell::word(matrix.argument), Cell::word(std::string(name(type))), Cell::count(csr.rows),
          Cell::count(csr.nnz())};
}

std::vector<Column> subject_columns(std::vector<Column> more) {
  std::vector<Column> all{
      {"matrix", "matrix"}, {"source", "source", false}, {"type", "type"}, {"rows", "rows"}, {"nnz", "nonzeros"}};
  for (Column& column : more) all.push_back(std::move(column));
  return all;
}

void append(std::vector<Cell>& cells, std::vector<Cell> more) {
  for (Cell& cell : more) cells.push_back(std::move(cell));
}

const Kernel* find_paper_kernel(std::string_view name, Backend backend) {
  const std::string host = name == "csr_scalar" ? "csr_host" : std::string(name) + "_host";
  for (const Kernel& kernel : kernels())
    if (kernel.backend == backend && (kernel.name == name || (backend == Backend::host && kernel.name == host)))
      return &kernel;
  return nullptr;
}

Cell microseconds(const Best& best) {
  if (best) return Cell::figure(1e6 * best.seconds(), 2);
  return best.refused.empty() ? Cell::none() : Cell{nullptr, "refused"};
}

Cell speed_up(const Best& base, const Best& best) {
  return base && best ? Cell::figure(base.seconds() / best.seconds(), 2) : Cell::none();
}

const Kernel* PaperBench::find_or_note(std::string_view kernel) {
  const Kernel* found = find_paper_kernel(kernel, backend_);
  if (found == nullptr) missing_.emplace(kernel);
  return found;
}

std::vector<Policy> PaperBench::policies(const Kernel& kernel, const RowStatistics& rows) {
  const std::vector<Policy> usual = kernel.policies(rows);
  if (kernel.automatic) return usual;
  std::vector<Policy> all;
  for (const Policy& policy : usual) {
    const bool has_blocks = policy.text().find("block_size=") != std::string::npos;
    std::vector<Policy> with_blocks{policy};
    if (has_blocks) {
      with_blocks.clear();
      for (const int size : kBlockSizes) with_blocks.push_back(policy.with(fmt::format("block_size={}", size)));
    }
    for (const Policy& one : with_blocks)
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  }
  return all;
}

const Best& PaperBench::best(Trial& trial, const Kernel& kernel) {
  if (const auto known = known_.find(kernel.name); known != known_.end()) return known->second;
  Best& best = known_[std::string(kernel.name)];
  const Format& format = find_format(kernel.format);
  for (const Policy& layout : trial.layouts(format)) {
    const StoredMatrix stored = trial.convert(format, layout);
    for (const Policy& policy : policies(kernel, trial.input().rows())) keep(trial.measure(kernel, stored, policy), best);
  }
  return best;
}

const Best& PaperBench::best(Trial& trial, std::string_view kernel) {
  static const Best kNone;
  const Kernel* found = find_or_note(kernel);
  return found == nullptr ? kNone : best(trial, *found);
}

void PaperBench::keep(const KernelResult& result, Best& best) {
  if (!result.measured()) {
    best.refused = result.refused;
    return;
  }
  if (!result.right()) wrong_.insert(result.kernel + " " + result.policy);
  if (result.right() && (!best || result.timing.median < best.seconds())) best.result = result;
}

double copy_seconds(std::int64_t bytes, Stream& stream) {
  if (stream.device().backend != Backend::cuda) return 0;
  const HostVector<char> from(static_cast<std::size_t>(bytes));
  const Buffer to(stream.device(), from.size());
  copy_to_device(to.data(), from.data(), from.size(), stream);  // the first one maps the memory
  stream.synchronize();
  const Timer timer;
  copy_to_device(to.data(), from.data(), from.size(), stream);
  stream.synchronize();
  return timer.seconds();
}

}  // namespace shardmat::tools
