#include "tools/serve/observe/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tools/serve/observe/service_json.h"

namespace shardmat::serve {
namespace {

using json = nlohmann::ordered_json;

/// Between comments that keep proxies from ending a silent stream, and tell us of clients that are gone.
constexpr double kPingSeconds = 15;

std::string text_of(const std::string& type, const json& data) {
  return fmt::format("event: {}\ndata: {}\n\n", type, data.dump(-1, ' ', false, json::error_handler_t::replace));
}

json data_of(const ServiceEvent& event) {
  json data = json::object();
  if (!event.matrix.empty()) data["name"] = event.matrix;
  if (!event.state.empty()) data["state"] = event.state;
  if (event.rank >= 0) data["rank"] = event.rank;
  if (!event.job.empty()) {
    data.erase("name");
    data["matrix"] = event.matrix;
    data["job"] = event.job, data["kind"] = event.kind, data["iteration"] = event.iteration,
    data["residual"] = event.residual;
  }
  if (event.end && event.end->signal != 0) data["signal"] = event.end->signal;
  else if (event.end) data["exit_code"] = event.end->exit_code;
  if (!event.reason.empty()) data["reason"] = event.reason;
  return data;
}

}  // namespace

Events::Events(EventLoop& loop, const Service& service) : service_(service), timer_(loop) { ping(); }

std::shared_ptr<TextStream> Events::listen(std::shared_ptr<const Rights> rights) {
  auto stream = std::make_shared<TextStream>();
  const auto problem = service_.why_not_ready();
  json matrices = json::array();
  for (const auto& [name, matrix] : service_.matrices())
    if (rights->may_use(name)) matrices.push_back({{"name", name}, {"state", state_name(matrix->state)}});
  stream->push(text_of("service", {{"state", problem ? problem->code : "ready"}, {"matrices", matrices}}));
  listening_.push_back({stream, std::move(rights)});
  return stream;
}

void Events::publish(const ServiceEvent& event) {
  const std::string text = fmt::format("id: {}\n", ++last_) + text_of(event.type, data_of(event));
  for (const Listening& one : std::exchange(listening_, {})) {
    const auto stream = one.stream.lock();
    if (!stream || !stream->is_open()) continue;
    const bool theirs = event.job.empty() || one.rights->is_owner() || one.rights->tenant() == event.owner;
    if (theirs && (event.matrix.empty() || one.rights->may_use(event.matrix))) stream->push(text);
    listening_.push_back(one);
  }
}

void Events::ping() {
  std::erase_if(listening_, [](const Listening& one) { return one.stream.expired(); });
  for (const Listening& one : listening_)
    if (const auto stream = one.stream.lock()) stream->push(": still here\n\n");
  timer_.start(kPingSeconds, [this] { ping(); });
}

}  // namespace shardmat::serve
