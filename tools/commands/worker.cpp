#include <malloc.h>

#include <csignal>
#include <memory>

#include "runtime/context/context.h"
#include "runtime/service/engine/engine.h"
#include "tools/cli/command.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_ranks.h"

namespace shardmat::tools {
namespace {

/// Ranks wait so long for each other. The front end notices a lost rank earlier.
constexpr double kTimeoutSeconds = 60;

/// One heap for all threads, as those of MPI and of loads: each further heap takes 64 MiB of addresses, and gives freed
/// memory back late. It must be said before another thread allocates.
void keep_one_heap() {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 1);
#endif
}

struct Options {
  service::EngineOptions engine;
  std::string library, backend = "auto";
};

}  // namespace

std::function<int()> add_worker(const CommandLine& program) {
  const CommandLine app = program.add_subcommand("worker", "A rank of the service; shardmat serve starts it");
  auto o = std::make_shared<Options>();
  app.in(Topic::machine)
      .add_option("--control", o->engine.control, "the service's socket for commands")
      ->required()
      ->type_name("PATH");
  app.in(Topic::input)
      .add_option("--library", o->library, "directory of the matrix files that may be loaded")
      ->required()
      ->type_name("DIR");
  add_backend_option(app, o->backend, "as for shardmat serve");
  app.footer("\nExample:\n  mpirun -n 2 shardmat worker --control PATH --library DIR\n");
  return [app, o] {
    keep_one_heap();
    // The front end says when ranks end: a signal to the whole group must not end them while it answers requests.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    o->engine.library = o->library;
    return run_ranks(app, kTimeoutSeconds, [&](Communicator& communicator) {
      Context context(communicator, parse_backend_choice(o->backend));
      service::run_engine(context, o->engine);
      return 0;
    });
  };
}

}  // namespace shardmat::tools
