// The service as its page shows it: a stream of server-sent events for each page, which has the last minutes first and then
// every second what has changed. Each page sees what its token may see.
//
//     hello     who the page is for, and what it may do                          once
//     history   figures of each of the last seconds                              once
//     now       the figures of the last second, and the state of the service     every second
//     ranks, matrices, jobs, tokens                                              when they have changed
//     log       new lines of the service's log                                   for tokens with scope admin and all
//     matrices
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/serve/gate/sessions.h"
#include "tools/serve/http/event_loop.h"
#include "tools/serve/http/http_message.h"
#include "tools/serve/observe/recent_figures.h"
#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

class Jobs;

class Live {
 public:
  Live(EventLoop& loop, const Service& service, const Jobs& jobs);

  void add(const RequestRecord& request);
  void add(const FinishedProduct& product);
  void add(const ServiceEvent& event);

  /// Null if there are too many pages already. REQUIRES: the client is identified.
  std::shared_ptr<TextStream> listen(const RequestHead& head);

  // What the events hold, for these rights.
  nlohmann::ordered_json now_json(const Rights& rights) const;
  nlohmann::ordered_json ranks_json(const Rights& rights) const;
  nlohmann::ordered_json matrices_json(const Rights& rights) const;
  nlohmann::ordered_json jobs_json(const Rights& rights) const;

 private:
  struct Listening {
    std::weak_ptr<TextStream> stream;
    std::shared_ptr<const Rights> rights;
    std::shared_ptr<const Session> session;   ///< null: the client gave a token
    std::map<std::string, std::string> sent;  ///< the last text of each event
    std::uint64_t last_line = 0;              ///< of the log
  };
  void tick();
  void tell(Listening& one, TextStream& stream) const;
  nlohmann::ordered_json figures_json(std::int64_t second, const Rights& rights) const;
  nlohmann::ordered_json history_json(const Rights& rights) const;
  nlohmann::ordered_json tokens_json(const Rights& rights) const;
  nlohmann::ordered_json kinds_json(const Rights& rights) const;
  nlohmann::ordered_json waiting_json(const Rights& rights) const;
  void note_waiting(double time);

  const Service& service_;
  const Jobs& jobs_;
  RecentFigures figures_;
  std::map<std::string, double> weights_;  ///< of clients that were seen
  std::map<std::int64_t, double> busy_;    ///< share of each second in which the ranks were at work
  double busy_before_ = 0, looked_ = 0;
  std::vector<Listening> listening_;
  Alarm timer_;
};

}  // namespace shardmat::serve
