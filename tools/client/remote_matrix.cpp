#include "tools/client/remote_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "kernels/base/error.h"
#include "tools/cli/environment.h"
#include "tools/cli/given_options.h"
#include "tools/cli/value_checks.h"
#include "tools/client/mapped_file.h"
#include "tools/serve/gate/sha256.h"
#include "tools/serve/http/names.h"
#include "tools/serve/state/state_directory.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

/// The name under which a command loads a file: the same one for the same file and the same way of loading.
std::string name_of(const WantedMatrix& wanted, const std::string& type) {
  std::string name = std::filesystem::path(wanted.matrix).filename().string().substr(0, 40);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c > 127 || !std::isalnum(c); }, '-');
  const serve::Sha256 digest = serve::sha256(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", wanted.matrix, type, wanted.kernel,
                                                         wanted.exchange, wanted.sort, wanted.solvable));
  return fmt::format("remote-{}-{:02x}{:02x}{:02x}{:02x}", name, digest[0], digest[1], digest[2], digest[3]);
}

bool is_ready(const json& matrix) { return matrix["state"] == "ready"; }
bool is_transposable(const json& matrix) { return matrix.value("transposable", true); }

/// A matrix of this file that gives what is wanted, but for its transpose. One with new values, or loaded in a way of its
/// own, is another matrix.
bool suits(const json& matrix, const WantedMatrix& wanted) {
  const bool is_plain = wanted.kernel == "auto" && wanted.exchange == "auto" && wanted.sort == "auto";
  return is_plain && is_ready(matrix) && matrix["source"] == wanted.matrix && !matrix.value("updatable", false) &&
         !matrix.contains("coordinates") && matrix["type"] == (wanted.type.empty() ? "f64" : wanted.type) &&
         (matrix.value("solvable", false) || !wanted.solvable);
}

RemoteMatrix described(const json& matrix) {
  RemoteMatrix found;
  found.name = matrix["name"], found.source = matrix["source"];
  found.path = "/v1/matrices/" + found.name;
  found.f32 = matrix["type"] == "f32", found.transposable = is_transposable(matrix);
  found.rows = matrix["rows"], found.cols = matrix["cols"], found.nnz = matrix["nnz"];
  found.widest = matrix["widths"].back()["columns"];
  found.ranks = static_cast<std::int64_t>(matrix["ranks"].size());
  return found;
}

/// Throws Error(input) if the service cannot multiply with the transpose of the matrix, however it is loaded.
void require_square(const std::string& name, std::int64_t rows, std::int64_t cols) {
  if (rows != cols)
    throw Error(
        ErrorKind::input,
        fmt::format("this service cannot multiply with the transpose of {}, which is {} × {}: its ranks keep the rows "
                    "that such products need of square matrices alone; give --remote here",
                    name, rows, cols));
}

/// Throws unless the matrix of this name in the service is as wanted.
void require_as_wanted(const json& matrix, const WantedMatrix& wanted) {
  const std::string name = matrix["name"], type = matrix["type"], state = matrix["state"];
  if (!is_ready(matrix))
    throw Error(state == "loading" ? ErrorKind::rank_lost : ErrorKind::input,
                fmt::format("{} is {} in the service{}", name, state,
                            matrix.contains("reason") ? ": " + matrix["reason"].get<std::string>() : ""));
  if (!wanted.type.empty() && wanted.type != type)
    throw Error(ErrorKind::input, fmt::format("{} is of type {} in the service", name, type), "type");
  for (const auto& [setting, word] :
       {std::pair("kernel", &wanted.kernel), {"exchange", &wanted.exchange}, {"sort", &wanted.sort}})
    if (*word != "auto")
      throw Error(ErrorKind::usage,
                  fmt::format("{} is loaded already, with its own {}; name the file in its library", name, setting),
                  setting);
  if (wanted.solvable && !matrix.value("solvable", false))
    throw Error(ErrorKind::input,
                fmt::format("{0} was loaded without what solvers need of it; load it again with: shardmat client "
                            "load {0} {1} --solvable",
                            name, matrix["source"].get<std::string>()));
  if (!wanted.transposable || is_transposable(matrix)) return;
  require_square(name, matrix["rows"], matrix["cols"]);
  throw Error(
      ErrorKind::input,
      fmt::format("{0} was loaded without the rows that products with its transpose need; load it again with: shardmat "
                  "client load {0} {1} --solvable",
                  name, matrix["source"].get<std::string>()));
}

/// A path as a value of a query.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += serve::is_matrix_name("a" + std::string(1, c)) || c == '/'
                  ? std::string(1, c)
                  : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  return result;
}

/// The name in the library of a file of this machine, with so many digits of its hash.
std::string name_by_content(const std::string& file, const std::string& hash, std::size_t digits) {
  const std::size_t most_rest = 64 - digits - 1;  // the suffix, which tells the format, is at the end
  std::string name = std::filesystem::path(file).filename().string();
  for (char& c : name)
    if (!serve::is_matrix_name("a" + std::string(1, c))) c = '-';
  return hash.substr(0, digits) + "-" + name.substr(name.size() - std::min(name.size(), most_rest));
}

/// What to load: the library's file of this path, if there is none here; else a file of the library with the bytes of the
/// one here, which is sent if need be. Throws Error(input) if it cannot be.
std::string source_of(HttpClient& client, const std::string& matrix) {
  constexpr std::string_view kLibrary = "library:";
  if (matrix.starts_with(kLibrary)) return matrix.substr(kLibrary.size());
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(matrix, ignored)) return matrix;
  const MappedFile file(matrix);
  const std::string hash = serve::text_of(serve::sha256(file.text()));
  const auto has = [&](const std::string& source) {
    const HttpReply reply = send_until_taken(client, "GET", "/v1/library?source=" + escaped(source));
    return reply.status == 200 && json::parse(reply.text()).value("sha256", "") == hash;
  };
  if (has(matrix)) return matrix;
  std::vector<std::string> taken;  // by files with other bytes
  for (const std::size_t digits : {std::size_t{16}, std::size_t{32}}) {
    const std::string name = name_by_content(matrix, hash, digits);
    if (has(name)) return name;
    const HttpReply reply = send_until_taken(client, "PUT", fmt::format("/v1/library/{}?sha256={}", name, hash),
                                             std::as_bytes(std::span(file.text())), "application/octet-stream");
    if (reply.status < 400) return name;
    if (reply.status == 409) {
      if (has(name)) return name;  // another command was faster
      taken.push_back(name);
      continue;
    }
    const json answer = json::parse(reply.text(), nullptr, false);
    const std::string why = answer.is_object() ? answer.value("error", "") : "";
    if (reply.status == 403)
      throw Error(ErrorKind::input,
                  fmt::format("{0} is a file here, which the service does not have and cannot get: {1}; a file {0} of its "
                              "library is library:{0}",
                              matrix, why));
    checked(reply);  // throws
  }
  throw Error(ErrorKind::input,
              fmt::format("{} cannot be sent: the library of the service has other files with the names {} and {}; take one "
                          "away: shardmat client delete-file {}",
                          matrix, taken[0], taken[1], taken[1]));
}

RemoteMatrix find_or_load_once(HttpClient& client, const WantedMatrix& given) {
  const json all = ask_json(client, "/v1/matrices");
  for (const json& matrix : all["matrices"])
    if (matrix["name"] == given.matrix) {
      require_as_wanted(matrix, given);
      return described(matrix);
    }
  WantedMatrix wanted = given;
  wanted.matrix = source_of(client, given.matrix);
  // The file may have changed since. A name of the service's own says nothing of files.
  const auto found_loaded = [&](const json& matrix) {
    RemoteMatrix found = described(matrix);
    if (wanted.matrix != given.matrix) return found;  // a name by content
    found.note =
        fmt::format("note: the service has {} loaded, as {}; if the file has changed since: shardmat client unload {}\n",
                    wanted.matrix, found.name, found.name);
    return found;
  };
  for (const bool any : {!wanted.transposable, true})
    for (const json& matrix : all["matrices"])
      if ((any || is_transposable(matrix)) && suits(matrix, wanted)) return found_loaded(matrix);
  const std::string type = wanted.type.empty() ? "f64" : wanted.type, name = name_of(wanted, type);
  const std::string body = json{{"source", wanted.matrix},     {"type", type},        {"kernel", wanted.kernel},
                                {"exchange", wanted.exchange}, {"sort", wanted.sort}, {"solvable", wanted.solvable}}
                               .dump();
  const HttpReply reply =
      send_until_taken(client, "POST", fmt::format("/v1/matrices/{}/load?wait=1", name), std::as_bytes(std::span(body)));
  const json answer = json::parse(reply.text(), nullptr, false);
  const std::string code = answer.is_object() ? answer.value("code", "") : "";
  if (reply.status == 409 && (code == "loaded" || code == "loading")) {  // another command was faster
    json there = ask_json(client, "/v1/matrices/" + name);
    for (; there["state"] == "loading"; there = ask_json(client, "/v1/matrices/" + name))
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    require_as_wanted(there, {name, wanted.type, "auto", "auto", "auto", wanted.solvable, false});
    return found_loaded(there);
  }
  if (reply.status == 403)
    throw Error(ErrorKind::input, fmt::format("the service has no {}, and this token may load none: {}", wanted.matrix,
                                              answer.is_object() ? answer.value("error", "") : ""));
  checked(reply);
  return described(answer);
}

}  // namespace

void add_remote_options(const CommandLine& command, RemoteChoice& choice) {
  choice.where = environment("SHARDMAT_REMOTE", "");
  choice.token_file = environment("SHARDMAT_REMOTE_TOKEN_FILE", "");
  choice.authorities = environment("SHARDMAT_REMOTE_CA", "");
  const CommandLine app = command.in(Topic::machine);
  app.add_option(
         "--remote", choice.where,
         "let a service do it (shardmat serve): URL, the path of its socket, or its state directory. The matrix is one "
         "that it has; a file here, which is sent there once, as long as it does not change; or a file of its library, "
         "which it loads once. here: on this machine (default: SHARDMAT_REMOTE, else here)")
      ->type_name("URL");
  app.add_option("--remote-token-file", choice.token_file,
                 "file with the token for --remote URL (default: SHARDMAT_REMOTE_TOKEN_FILE)")
      ->type_name("FILE");
  app.add_option(
         "--remote-ca", choice.authorities,
         "PEM file with the certificates to trust for https (default: SHARDMAT_REMOTE_CA, else those of this system)")
      ->type_name("FILE");
  app.add_option(
         "--remote-timeout", choice.timeout,
         "give up, with exit code 5, if the service neither takes nor sends anything for X seconds. It sends nothing "
         "while it loads or solves. What it refuses to begin, as it is busy or starts its ranks, is sent again for that "
         "long, too (default: wait as long as the service does, and send again for 60 s)")
      ->check(positive_number());
}

HttpClient connect(const RemoteChoice& choice) {
  ServiceAddress address;
  const std::string& where = choice.where;
  std::error_code ignored;
  if (where.find("://") != std::string::npos) address.url = where;
  else if (std::filesystem::is_directory(where, ignored)) address.state = where;
  else address.unix_socket = where;
  address.token_file = choice.token_file, address.authorities = choice.authorities;
  address.timeout = choice.timeout, address.timeout_setting = "remote-timeout";
  address.no_token = choice.token_file.empty();
  return connect(address);
}

void require_remote_options(const CommandLine& app, const std::string& command, const std::vector<std::string>& taken) {
  if (launch().size > 1)
    throw Error(ErrorKind::usage,
                fmt::format("the ranks of the service {0} the matrix; start shardmat {0} without mpirun, or "
                            "with --remote here",
                            command));
  for (const std::string& name : names_of_given(app)) {
    if (!name.starts_with("--") || name.starts_with("--remote")) continue;
    if (std::find(taken.begin(), taken.end(), name) == taken.end())
      throw Error(ErrorKind::usage,
                  fmt::format("a service cannot do what {} asks for; leave it out, or give --remote here", name));
  }
}

RemoteMatrix find_or_load(HttpClient& client, const WantedMatrix& given) {
  RemoteMatrix found = find_or_load_once(client, given);
  if (!given.transposable || found.transposable) return found;
  require_square(found.source, found.rows, found.cols);
  WantedMatrix solvable = given;
  solvable.solvable = true;
  return find_or_load_once(client, solvable);
}

}  // namespace shardmat::tools
