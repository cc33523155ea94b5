#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "tools/cli/command.h"
#include "tools/cli/environment.h"
#include "tools/cli/value_checks.h"
#include "tools/cli/write_text.h"
#include "tools/serve/gate/sha256.h"
#include "tools/serve/gate/tokens.h"
#include "tools/serve/state/replace_file.h"
#include "tools/serve/words/utc.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

struct Options {
  std::string file, name, priority, expires;
  std::vector<std::string> scopes, matrices;
  double weight = 1, requests_per_second = 0, bytes_per_second = 0;
  std::uint64_t memory = 0;
};

[[noreturn]] void fail(const std::string& file, const std::string& why) {
  throw Error(ErrorKind::resources, fmt::format("{}: {}", file, why), "tokens");
}

/// The token file, which nobody else changes as long as this lives.
class TokenFile {
 public:
  explicit TokenFile(const std::string& given)
      : file_(std::filesystem::weakly_canonical(std::filesystem::absolute(given)).string()) {
    const std::string& file = file_;  // behind links
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    lock_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock_ < 0 || flock(lock_, LOCK_EX) != 0) fail(file, std::strerror(errno));
    std::ifstream stream(file);
    std::ostringstream text;
    if (stream) text << stream.rdbuf();
    else if (errno != ENOENT) fail(file, std::strerror(errno));
    try {
      if (stream) serve::TokenTable::parse(text.str());
    } catch (const Error& error) {
      throw Error(ErrorKind::input, fmt::format("{}: {}", file, error.what()), "tokens");
    }
    content = stream ? json::parse(text.str()) : json{{"tokens", json::array()}};
  }
  ~TokenFile() { close(lock_); }
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  /// The token of this name; the end of the list if there is none.
  json::iterator find(const std::string& name) {
    json& tokens = content["tokens"];
    return std::find_if(tokens.begin(), tokens.end(), [&](const json& token) { return token["name"] == name; });
  }

  /// Takes the place of the old file at once, or leaves it as it was.
  void save() const {
    const std::string text = content.dump(2) + "\n";
    serve::TokenTable::parse(text);
    if (const auto error = serve::replace_file(file_, text)) fail(file_, error.message());
  }

  json content;

 private:
  std::string file_;
  int lock_ = -1;
};

std::string new_secret() {
  unsigned char random[32];
  if (getrandom(random, sizeof random, 0) != sizeof random)
    throw Error(ErrorKind::resources, "there are no random numbers for a token");
  std::string secret;
  for (const unsigned char byte : random) secret += fmt::format("{:02x}", byte);
  return secret;
}

std::string hash_of(const std::string& secret) {
  std::string text;
  for (const std::uint8_t byte : serve::sha256(secret)) text += fmt::format("{:02x}", byte);
  return text;
}

/// Seconds of "30d", "12h"; nothing for anything else.
std::optional<double> duration(const std::string& text) {
  constexpr std::string_view kUnits = "smhdw";
  constexpr double kSeconds[] = {1, 60, 3600, 86400, 604800};
  const std::size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  const std::string number = text.substr(0, text.size() - (text.empty() ? 0 : 1));
  if (unit == kUnits.npos || number.empty() || number.size() > 6 || number.find_first_not_of("0123456789") != number.npos)
    return std::nullopt;
  return std::stod(number) * kSeconds[unit];
}

/// The end of a token as the file has it.
std::string end_of(const std::string& text) {
  const std::optional<double> after = duration(text), at = serve::parse_utc(text), now = serve::seconds_since_1970();
  if (!after && !at)
    throw Error(ErrorKind::usage,
                fmt::format("{} is no end of a token; give one as 30d (s, m, h, d, w) or 2027-01-31T12:00:00Z", text),
                "expires");
  const double end = after ? *now + *after : *at;
  if (end <= *now) throw Error(ErrorKind::usage, fmt::format("{} is over", text), "expires");
  return serve::utc(end).substr(0, 19) + "Z";
}

int add(const Options& o) {
  TokenFile file(o.file);
  json& tokens = file.content["tokens"];
  if (file.find(o.name) != tokens.end())
    throw Error(ErrorKind::usage, fmt::format("{} has a token {} already; remove it, or take another name", o.file, o.name));
  const std::string secret = new_secret();
  json token{{"name", o.name}, {"sha256", hash_of(secret)}, {"scopes", o.scopes}};
  if (!o.matrices.empty()) token["matrices"] = o.matrices;
  if (o.weight != 1) token["weight"] = o.weight;
  if (!o.priority.empty()) token["priority"] = o.priority;
  if (o.memory > 0) token["memory_bytes"] = o.memory;
  if (o.requests_per_second > 0) token["requests_per_second"] = o.requests_per_second;
  if (o.bytes_per_second > 0) token["bytes_per_second"] = o.bytes_per_second;
  if (!o.expires.empty()) token["expires"] = end_of(o.expires);
  tokens.push_back(token);
  file.save();
  write_text("-", secret + "\n");
  std::fputs("This token is not stored anywhere. The service takes it once SIGHUP tells it to read the file again\n",
             stderr);
  return 0;
}

int list(const Options& o) {
  const TokenFile file(o.file);
  std::string text;
  for (const json& token : file.content["tokens"]) {
    const auto words = [&](const char* key) { return token[key].get<std::vector<std::string>>(); };
    text += fmt::format("{:<16} {}", token["name"].get<std::string>(), fmt::join(words("scopes"), ","));
    if (token.contains("matrices")) text += fmt::format(", matrices {}", fmt::join(words("matrices"), ","));
    if (token.contains("weight")) text += fmt::format(", weight {}", token["weight"].get<double>());
    if (token.contains("priority")) text += fmt::format(", priority {}", token["priority"].get<std::string>());
    if (token.contains("memory_bytes")) text += fmt::format(", memory {}", human_bytes(token["memory_bytes"].get<double>()));
    if (token.contains("expires")) {
      const std::string end = token["expires"];
      text += (*serve::parse_utc(end) > serve::seconds_since_1970() ? ", until " : ", expired at ") + end;
    }
    text += "\n";
  }
  write_text("-", text);
  return 0;
}

int remove(const Options& o) {
  TokenFile file(o.file);
  json& tokens = file.content["tokens"];
  const auto token = file.find(o.name);
  if (token == tokens.end()) throw Error(ErrorKind::input, fmt::format("{} has no token {}", o.file, o.name));
  tokens.erase(token);
  file.save();
  std::fputs("The service lets it in until SIGHUP tells it to read the file again\n", stderr);
  return 0;
}

void add_file_option(const CommandLine& app, Options& o) {
  app.in(Topic::machine)
      .add_option("--tokens", o.file, "the file that shardmat serve --tokens reads")
      ->required()
      ->type_name("FILE")
      ->common();
}

void add_add_options(const CommandLine& app, Options& o) {
  app.add_option("name", o.name, "name of the client, as logs and figures have it")->required();
  app.in(Topic::computation)
      .add_option("--scope", o.scopes, "what the token may do: read, multiply, vectors, library, admin; several with commas")
      ->required()
      ->check(one_of({"read", "multiply", "vectors", "library", "admin"}))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->common();
  app.in(Topic::computation)
      .add_option("--matrices", o.matrices,
                  "pattern of the names of matrices that it is for, as 'fem-*'; several with commas "
                  "(default: all)")
      ->type_name("PATTERN")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->common();
  app.in(Topic::computation)
      .add_option("--weight", o.weight, "its share of the ranks' time, beside other clients")
      ->check(positive_number())
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--priority", o.priority, "the highest that it may ask for (default: normal)")
      ->check(one_of({"high", "normal", "low"}));
  app.in(Topic::machine)
      .add_option("--memory", o.memory, "the most that its vectors and requests hold, as 4GB (default: no limit)")
      ->transform(bytes_with_unit())
      ->type_name("SIZE")
      ->common();
  app.in(Topic::machine)
      .add_option("--requests-per-second", o.requests_per_second, "the most requests a second (default: no limit)")
      ->check(positive_number());
  app.in(Topic::machine)
      .add_option("--bytes-per-second", o.bytes_per_second, "the most bytes of bodies a second (default: no limit)")
      ->check(positive_number());
  app.in(Topic::machine)
      .add_option("--expires", o.expires,
                  "when it ends: after a time, as 30d or 12h, or at one, as 2027-01-31 (UTC). Its "
                  "vectors stay until it is removed (default: never)")
      ->type_name("WHEN")
      ->common();
}

}  // namespace

std::function<int()> add_token(const CommandLine& program) {
  const CommandLine app = program.add_subcommand("token", "Make, list and remove the tokens of a service's clients");
  app.require_subcommand();
  auto o = std::make_shared<Options>();
  const CommandLine add_app = app.add_subcommand("add", "Make a token, print it once, and write its hash to the file");
  add_add_options(add_app, *o);
  add_file_option(add_app, *o);
  const CommandLine list_app = app.add_subcommand("list", "List the tokens of the file");
  add_file_option(list_app, *o);
  const CommandLine remove_app = app.add_subcommand("remove", "Remove a token from the file");
  remove_app.add_option("name", o->name, "name of the token")->required();
  add_file_option(remove_app, *o);
  app.footer(
      "\nThe file has the hashes of tokens alone. SIGHUP tells the service to read it again.\n"
      "\nExamples:\n  shardmat token add lab --scope read,multiply --matrices 'fem-*' --expires 30d --tokens tokens.json\n"
      "  shardmat token list --tokens tokens.json\n  shardmat serve --library . --listen 127.0.0.1:8980 --tokens "
      "tokens.json\n");
  return [add_app, remove_app, o] {
    require_single_process("token");
    return add_app.parsed() ? add(*o) : remove_app.parsed() ? remove(*o) : list(*o);
  };
}

}  // namespace shardmat::tools
