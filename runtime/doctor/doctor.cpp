#include "runtime/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/doctor/check.h"
#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {
namespace {

constexpr const char* kNotLookedAt = "not_looked_at";

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string root_of(const Options& options, int rank) {
  constexpr std::string_view kRank = "{rank}";
  std::string root = options.root;
  if (const std::size_t at = root.find(kRank); at != std::string::npos) root.replace(at, kRank.size(), std::to_string(rank));
  return root;
}

/// The name of this rank's host; that of a test's folder counts as another host's.
std::string host_name(const Communicator& communicator, const HostFiles& files) {
  const std::string pretended = files.root().empty() ? "" : files.line("/proc/sys/kernel/hostname");
  return pretended.empty() ? communicator.host() : pretended;
}

Json look(const Viewpoint& viewpoint) {
  Json facts = Json::object();
  for (const Check& check : checks()) {
    if (check.look == nullptr || (!check.is_quick && !viewpoint.options.measure)) continue;
    try {
      facts[check.name] = check.look(viewpoint);
    } catch (const std::exception& error) {
      facts[check.name] = {{kNotLookedAt, error.what()}};
    }
  }
  return facts;
}

Gathered gather(Communicator& communicator, const std::string& host, const Json& mine) {
  const std::vector<std::string> hosts = communicator.all_gather(host), texts = communicator.all_gather(dump(mine));
  std::vector<Gathered::Rank> ranks;
  for (std::size_t r = 0; r < hosts.size(); ++r) ranks.push_back({hosts[r], Json::parse(texts[r])});
  return Gathered(std::move(ranks));
}

void measure(Communicator& communicator, const Viewpoint& viewpoint, Json& facts) {
  for (const Check& check : checks()) {
    if (check.measure == nullptr) continue;
    Json& of_check = facts[check.name];
    if (of_check.is_null()) of_check = Json::object();
    try {
      of_check.update(check.measure(communicator, viewpoint));
    } catch (const AgreedError& error) {  // the same on all ranks, which can go on
      of_check[kNotLookedAt] = error.what();
    }
  }
}

Report report(const Gathered& all) {
  Report result;
  result.ranks = all.size();
  Json facts = Json::array();
  for (int rank = 0; rank < all.size(); ++rank) {
    Json one{{"rank", rank}, {"host", all.host(rank)}};
    one.update(all.facts(rank));
    facts.push_back(std::move(one));
  }
  result.facts = dump(facts);
  for (const Check& check : checks()) {
    Section section{check.name, check.title, {}};
    check.judge(all, result.findings);
    check.show(all, section.rows);
    const std::string missing =
        by_rank(all, [&](int rank) { return get<std::string>(all.facts(rank, check.name), kNotLookedAt, ""); });
    if (!missing.empty()) section.rows.emplace_back("not looked at", missing);
    if (!section.rows.empty()) result.sections.push_back(std::move(section));
  }
  return result;
}

}  // namespace

Report examine(Communicator& communicator, const Options& options) {
  const Timer timer;
  const Viewpoint viewpoint{HostFiles(root_of(options, communicator.rank())), options, communicator.rank(),
                            communicator.size(), communicator.local_rank()};
  const std::string host = host_name(communicator, viewpoint.files);
  Json mine = look(viewpoint);
  Gathered all = gather(communicator, host, mine);
  std::exception_ptr lost;
  std::string why_lost;
  if (options.measure) {
    try {
      measure(communicator, viewpoint, mine);
      all = gather(communicator, host, mine);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::rank_lost) throw;
      lost = std::current_exception();
      why_lost = error.what();
    }
  }
  Report result = report(all);
  if (lost)
    result.findings.push_back(
        {"rank_lost", "while links were measured: " + why_lost,
         "Ranks that cannot reach each other wait until a run's deadline, and the run fails.",
         "Look for the rank's message above, for a firewall between the hosts, and at NCCL_DEBUG=WARN."});
  result.lost = lost;
  result.seconds = timer.seconds();
  return result;
}

std::vector<std::string> quick_findings(Communicator& communicator) {
  Options options;
  options.measure = false;
  std::vector<std::string> names;
  for (const Finding& finding : examine(communicator, options).findings) names.push_back(finding.name);
  return names;
}

}  // namespace shardmat::doctor
