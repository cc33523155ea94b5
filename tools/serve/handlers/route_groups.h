// The groups of paths. A new group is a file with a function of this kind, declared and listed here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "tools/serve/http/routes.h"
#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

class Events;
class Gate;
class Jobs;
class LibraryFiles;
class Live;
class Metrics;
class Uploads;

/// What routes work with. It outlives them and their jobs.
struct Parts {
  Service& service;
  Metrics& metrics;
  Events& events;
  Jobs& jobs;
  EventLoop& loop;
  Gate& gate;
  Live& live;
  const LibraryFiles& library;          ///< matrix files
  std::filesystem::path state = {};     ///< the state directory
  std::string program = {};             ///< shardmat
  std::uint64_t most_upload_bytes = 0;  ///< of a file that a client sends to the library; 0: none is taken
};

void add_batch_routes(Routes& routes, const Parts& parts);
void add_health_routes(Routes& routes, const Parts& parts);
void add_job_routes(Routes& routes, const Parts& parts);
void add_library_routes(Routes& routes, const Parts& parts);
void add_matrix_routes(Routes& routes, const Parts& parts);
void add_memory_routes(Routes& routes, const Parts& parts);
void add_observe_routes(Routes& routes, const Parts& parts);
void add_page_routes(Routes& routes, const Parts& parts);
void add_spy_routes(Routes& routes, const Parts& parts);
void add_v2_routes(Routes& routes, const Parts& parts);
void add_vector_routes(Routes& routes, const Parts& parts);

/// Those of matrices of arrays, which are uploads, too; add_library_routes() calls it.
void add_array_routes(Routes& routes, const Parts& parts, const std::shared_ptr<Uploads>& uploads);

constexpr void (*kRouteGroups[])(Routes&, const Parts&) = {
    add_batch_routes,   add_health_routes, add_job_routes, add_library_routes, add_matrix_routes, add_memory_routes,
    add_observe_routes, add_page_routes,   add_spy_routes, add_v2_routes,      add_vector_routes};

}  // namespace shardmat::serve
