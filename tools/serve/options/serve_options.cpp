#include "tools/serve/options/serve_options.h"

#include <sstream>

#include "tools/cli/value_checks.h"

namespace shardmat::serve {

using namespace tools;

namespace {

void add_door_options(const CommandLine& app, ServeOptions& o) {
  app.in(Topic::machine)
      .add_option("--listen", o.listen,
                  "also listen on this address, as 127.0.0.1:8980. The option may be given several times. Clients need a "
                  "token there (--tokens, or the file token in --state), and TLS if other hosts can reach the address. Port "
                  "0 stands for any free port, which the log names")
      ->type_name("ADDR:PORT")
      ->common();
  auto tokens = app.in(Topic::input)
                    .add_option("--tokens", o.tokens, "JSON file of the tokens that clients may have. SIGHUP reads it again")
                    ->type_name("FILE")
                    ->common();
  app.in(Topic::machine)
      .add_flag("--no-token", o.no_token, "clients on this host need no token: every user of this host may use the service")
      ->excludes(tokens);
  app.in(Topic::input)
      .add_option("--tls-certificate", o.tls_certificate,
                  "PEM file with the certificate and its chain, for all addresses of --listen. SIGHUP reads it again")
      ->type_name("FILE")
      ->common();
  app.in(Topic::input)
      .add_option("--tls-key", o.tls_key, "PEM file with the key of the certificate")
      ->type_name("FILE")
      ->common();
  app.in(Topic::machine)
      .add_option(
          "--trusted-proxy", o.trusted_proxies,
          "address of a proxy that clients come through, as 10.0.0.2. Its X-Forwarded-For says who they are, and its "
          "X-Forwarded-Proto whether they use TLS. Only such proxies reach an address of --listen that has no TLS")
      ->type_name("ADDR");
  app.in(Topic::machine)
      .add_option("--host-name", o.host_names,
                  "name by which clients call this service, besides localhost and its addresses")
      ->type_name("NAME");
  app.in(Topic::machine)
      .add_option("--origin", o.origins, "web pages of this origin may use the service, as https://lab.example.org")
      ->type_name("URL");
  app.in(Topic::machine)
      .add_option("--connections", o.connections,
                  "maximum number of connections at a time. Loopback addresses together have half of them")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  app.in(Topic::machine)
      .add_option("--connections-per-address", o.connections_per_address,
                  "maximum number of connections of another host at a time")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  app.in(Topic::machine)
      .add_option("--header-timeout", o.header_timeout, "seconds within which the header of a request must arrive")
      ->check(number_from(0.01))
      ->capture_default_str();
  app.in(Topic::machine)
      .add_option("--body-timeout", o.body_timeout,
                  "seconds after which the body of a request must arrive at 64 KiB a second")
      ->check(number_from(0.01))
      ->capture_default_str();
  app.in(Topic::output)
      .add_option("--access-log", o.access_log,
                  "file for a line of JSON about each request; - is standard output. SIGHUP opens the file anew")
      ->type_name("FILE");
}

/// The ranks, their memory, and what happens when they are lost.
void add_rank_options(const CommandLine& command, ServeOptions& o) {
  const CommandLine app = command.in(Topic::machine);
  auto ranks = app.add_option("--ranks", o.ranks, "number of ranks, which mpirun starts")
                   ->check(whole_number(1, 1 << 20))
                   ->capture_default_str()
                   ->common();
  app.add_option("--launcher", o.launcher, "command that starts the ranks in place of mpirun, as 'srun -n 8'")
      ->excludes(ranks)
      ->common();
  app.add_option("--backend", o.backend, "cuda: one GPU a rank; host: threads; auto: GPUs if every rank sees one")
      ->check(one_of({"auto", "host", "cuda"}))
      ->capture_default_str()
      ->common();
  app.add_option(
         "--arena", o.arena,
         "memory for the vectors of all requests under way, as 512MB (default: an eighth of the memory, at most 4 GiB)")
      ->transform(bytes_with_unit())
      ->check(whole_number(kLeastArena, std::int64_t{1} << 50))
      ->type_name("BYTES")
      ->common();
  app.add_option("--timeout", o.timeout,
                 "a rank that gives no sign of life for X seconds is lost. A product may take 20 times as long as expected, "
                 "and 2 seconds more")
      ->check(number_from(2))
      ->capture_default_str();
  app.add_option("--restarts", o.restarts, "give up with exit code 5 after N restarts of lost ranks in 10 minutes")
      ->check(whole_number(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--restart-delay", o.restart_delay,
                 "seconds before the second restart. The first restart comes at once. Each further restart waits twice as "
                 "long as the one before, at most 30 s. After 10 seconds without a loss, restarts are counted anew")
      ->check(number_from(0))
      ->capture_default_str();
}

}  // namespace

void add_serve_options(const CommandLine& app, ServeOptions& o) {
  app.in(Topic::input)
      .add_option("--config", o.config,
                  "JSON file with options by their names, as {\"ranks\": 2}. Options of the command line override it")
      ->type_name("FILE")
      ->common();
  app.in(Topic::input)
      .add_option("--library", o.library,
                  "directory of the matrix files that may be loaded. No file outside it can be loaded")
      ->type_name("DIR")
      ->common();
  app.in(Topic::input)
      .add_option("--upload-limit", o.upload_limit,
                  "let clients with the scope library send files and arrays of at most so many bytes into the library, as "
                  "10GB (default: none)")
      ->transform(bytes_with_unit())
      ->check(whole_number(0, std::int64_t{1} << 50))
      ->type_name("BYTES");
  app.in(Topic::machine)
      .add_option("--unix", o.unix_socket,
                  "Unix socket to listen on, which only this user can open (default: http.sock in --state)")
      ->type_name("PATH")
      ->common();
  app.in(Topic::machine)
      .add_option("--unix-group", o.unix_group,
                  "let the members of this group use the Unix socket, too, as the owner of the service. The socket must lie "
                  "in a directory that they may enter (--unix)")
      ->type_name("NAME");
  add_door_options(app, o);
  app.in(Topic::machine)
      .add_option("--state", o.state,
                  "directory for the list of loaded matrices, the sockets, the token and the workers' log. One server at a "
                  "time can use it (default: $XDG_STATE_HOME/shardmat, else ~/.local/state/shardmat)")
      ->type_name("DIR")
      ->common();
  add_rank_options(app, o);
  app.in(Topic::computation)
      .add_option("--max-queue-ms", o.max_queue_ms, "refuse requests (429) that would wait more than X ms for their product")
      ->check(number_from(0))
      ->capture_default_str();
  app.in(Topic::machine)
      .add_option("--drain-seconds", o.drain_seconds,
                  "after SIGTERM or SIGINT, say for X seconds that the service is not ready, but still take requests. "
                  "Balancers then send requests elsewhere before the service refuses any. Jobs go on meanwhile, and what is "
                  "done can be fetched; new ones are refused unless their request waits for them")
      ->check(number_from(0))
      ->capture_default_str();
  app.in(Topic::computation)
      .add_flag("--no-merge", o.no_merge,
                "give every request a product of its own. This is slower, and meant for comparison");
  app.footer(
      "\nSIGTERM and SIGINT end the service once all accepted requests are answered; a second signal ends it at once. "
      "Jobs that no request waits for then are ended, and the log names them; --drain-seconds gives them time. "
      "SIGHUP reads the tokens and the certificate again, and opens the access log anew.\n"
      "\nExamples:\n  shardmat serve --library matrices --ranks 2\n"
      "  shardmat client load bar bar.h5\n"
      "  shardmat client multiply bar x.npy y.npy\n");
}

std::vector<std::string> launcher_of(const ServeOptions& options) {
  if (options.launcher.empty()) return {"mpirun", "-n", std::to_string(options.ranks)};
  std::istringstream stream(options.launcher);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace shardmat::serve
