// shardmat-serve: the front end of the service. It links neither MPI nor CUDA nor HDF5, and survives the death of any rank.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/print_error.h"
#include "runtime/service/wire/arena.h"
#include "runtime/service/wire/library.h"
#include "tools/cli/help_formatter.h"
#include "tools/cli/standard_streams.h"
#include "tools/serve/gate/doors.h"
#include "tools/serve/handlers/api.h"
#include "tools/serve/http/event_loop.h"
#include "tools/serve/http/http_server.h"
#include "tools/serve/observe/access_log.h"
#include "tools/serve/observe/events.h"
#include "tools/serve/observe/live.h"
#include "tools/serve/observe/metrics.h"
#include "tools/serve/observe/supervisor.h"
#include "tools/serve/observe/watched.h"
#include "tools/serve/options/serve_options.h"
#include "tools/serve/ranks/jobs.h"
#include "tools/serve/ranks/service.h"
#include "tools/serve/state/library_files.h"
#include "tools/serve/state/state_directory.h"
#include "tools/serve/words/config_file.h"
#include "tools/serve/words/log.h"

namespace shardmat::serve {
namespace {

constexpr std::int64_t kLargestDefaultArena = std::int64_t{4} << 30;
constexpr int kSecondSignal = 128 + SIGTERM;

std::uint64_t arena_bytes(const ServeOptions& options) {
  if (options.arena > 0) return static_cast<std::uint64_t>(options.arena);
  return static_cast<std::uint64_t>(std::clamp(available_on_host() / 8, kLeastArena, kLargestDefaultArena));
}

/// The program beside this one.
std::string shardmat() {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "shardmat";
  if (!std::filesystem::exists(program))
    throw Error(ErrorKind::resources,
                fmt::format("{}: there is no such program; it must lie beside shardmat-serve", program.string()));
  return program.string();
}

ServiceOptions service_options(const ServeOptions& o) {
  ServiceOptions options;
  options.launcher = launcher_of(o);
  options.worker = {shardmat(),  "worker", "--library", std::filesystem::absolute(o.library).string(),
                    "--backend", o.backend};
  options.timeout = o.timeout;
  options.restarts = o.restarts, options.restart_delay = o.restart_delay;
  options.max_queue_seconds = o.max_queue_ms / 1000;
  options.merging = o.no_merge ? Merging::off : Merging::on;
  return options;
}

HttpLimits http_limits(const ServeOptions& o) {
  return {static_cast<std::size_t>(o.connections), static_cast<std::size_t>(o.connections_per_address), o.header_timeout,
          o.body_timeout};
}

/// Open MPI binds each of two ranks to one core, and those of every service to the same ones. Host threads need all cores.
/// A setting of the user stays; other launchers ignore these.
void leave_ranks_unbound(const ServeOptions& o) {
  if (o.backend == "cuda" || !o.launcher.empty()) return;
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);     // Open MPI 4
  setenv("PRTE_MCA_hwloc_default_binding_policy", "none", 0);  // Open MPI 5
}

/// Connections need descriptors, and shells allow few by default.
void allow_many_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const ServeOptions& o) {
  if (o.library.empty()) throw Error(ErrorKind::usage, "the directory of the matrix files is missing", "library");
  allow_many_descriptors();
  { const service::Library readable(o.library); }  // says at once what workers would say later
  StateDirectory state(o.state.empty() ? default_state_directory() : std::filesystem::path(o.state));
  const LibraryFiles library(std::filesystem::absolute(o.library), state.id());
  library.clean(state.read_matrices());
  const service::Arena arena = service::Arena::create(arena_bytes(o));
  leave_ranks_unbound(o);
  setenv("OMP_WAIT_POLICY", "passive", 0);  // the ranks' idle threads leave the cores to this process and to clients
  EventLoop loop;
  Supervisor supervisor(loop);
  Service service(loop, service_options(o), state, arena);
  Doors doors(o, state);
  Metrics metrics(service);
  Events events(loop, service);
  Jobs jobs(loop, service);
  Live live(loop, service, jobs);
  service.on_event = [&](const ServiceEvent& event) {
    metrics.add(event), live.add(event), events.publish(event), jobs.on_event(event);
    if (event.type == "ready") supervisor.ready();
    if (event.type == "rank_lost") supervisor.status(event.reason + "; the ranks are being started again");
  };
  service.dispatcher().on_product = [&](const FinishedProduct& product) { metrics.add(product), live.add(product); };
  const auto access_log = o.access_log.empty() ? nullptr : std::make_unique<AccessLog>(o.access_log);
  if (access_log) metrics.lost_access_lines = [&] { return access_log->lost_lines(); };
  const auto record = [&](const RequestRecord& request) {
    metrics.add(request), live.add(request);
    if (access_log) access_log->write(request);
  };
  Api api(Parts{service, metrics, events, jobs, loop, doors.gate(), live, library, state.path(), shardmat(),
                static_cast<std::uint64_t>(o.upload_limit)});
  HttpServer server(
      loop, http_limits(o), [&](RequestHead& head) { return api.route(head); }, Api::check_again, record);
  metrics.more = [&](PrometheusText& text) {
    write_jobs(text, jobs);
    write_connections(text, server.connections());
    if (const auto expires = doors.certificate_expires()) write_certificate(text, *expires);
    write_build(text, o.backend);
  };
  bool draining = false, second = false;
  Alarm leaving(loop);
  const auto drain = [&] {
    log_line("ending: requests that were accepted are answered first");
    service.drain();
    jobs.end_unattended();
    server.drain([&] {
      jobs.end_unattended();  // whose requests have stopped to wait meanwhile
      service.finish();
    });
  };
  loop.on_signals({SIGHUP}, [&] {
    doors.reload();
    server.check_rights();
    const auto exists = [&](const std::string& owner) { return doors.gate().has_tenant(owner); };
    jobs.drop_unowned(exists);
    service.drop_unowned_vectors(exists);
    if (access_log) read_again("access log", [&] { access_log->reopen(); });
  });
  loop.on_signals({SIGTERM, SIGINT}, [&] {
    if (draining) return second = true, loop.stop();
    draining = true;
    supervisor.stopping();
    if (o.drain_seconds == 0) return drain();
    log_line(
        fmt::format("ending in {:g} s: until then requests are taken, jobs go on, and /v2/health/ready answers 503 "
                    "(--drain-seconds)",
                    o.drain_seconds));
    service.leave();
    leaving.start(o.drain_seconds, drain);
  });
  service.start();
  doors.open(server);
  loop.run();
  return second ? kSecondSignal : service.exit_code();
}

std::vector<std::string> names_of_options(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::Option* option : program.get_options())
    if (!option->get_lnames().empty() && option != program.get_help_ptr() && option != program.get_help_all_ptr())
      names.push_back(option->get_lnames().front());
  return names;
}

int parse_and_run(int argc, char** argv) {
  CLI::App program{"Keeps sparse matrices on the ranks and multiplies them by vectors that clients send.", "shardmat-serve"};
  program.formatter(std::make_shared<tools::HelpFormatter>());
  program.set_help_flag("-h,--help", "print this text");
  program.set_help_all_flag("--help-all", "print this text with all options");
  ServeOptions options;
  add_serve_options(tools::CommandLine(program), options);
  try {
    std::vector<std::string> words = with_config_file({argv + 1, argv + argc}, names_of_options(program));
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    program.parse(words);
  } catch (const CLI::Success& request) {
    return program.exit(request);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::usage, fmt::format("{}; see: shardmat-serve --help", error.what()));
  }
  return run(options);
}

}  // namespace
}  // namespace shardmat::serve

int main(int argc, char** argv) {
  using namespace shardmat;
  std::signal(SIGPIPE, SIG_IGN);
  tools::open_standard_streams(tools::ClosedOutput::is_lost);
  const auto say = [](const std::string& message) { serve::error_line(message); };
  try {
    return serve::parse_and_run(argc, argv);
  } catch (const Error& error) {
    say(error.setting().empty() ? error.what() : fmt::format("{} (--{})", error.what(), error.setting()));
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    say("not enough memory");
    return static_cast<int>(ErrorKind::resources);
  } catch (const std::exception& error) {
    say(fmt::format("internal error: {}", error.what()));
    return static_cast<int>(ErrorKind::internal);
  }
}
