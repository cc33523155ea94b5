// What happens in the service, told to everyone who listens, as server-sent events.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/serve/http/event_loop.h"
#include "tools/serve/http/http_message.h"
#include "tools/serve/ranks/service.h"
#include "tools/serve/words/rights.h"

namespace shardmat::serve {

class Events {
 public:
  Events(EventLoop& loop, const Service& service);

  /// The events from now on that concern matrices which the rights cover. The first one tells the present state.
  std::shared_ptr<TextStream> listen(std::shared_ptr<const Rights> rights);
  void publish(const ServiceEvent& event);

 private:
  struct Listening {
    std::weak_ptr<TextStream> stream;
    std::shared_ptr<const Rights> rights;
  };
  void ping();

  const Service& service_;
  std::vector<Listening> listening_;
  std::uint64_t last_ = 0;
  Alarm timer_;
};

}  // namespace shardmat::serve
