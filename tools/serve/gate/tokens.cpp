#include "tools/serve/gate/tokens.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "kernels/base/error.h"
#include "tools/serve/words/utc.h"

namespace shardmat::serve {

using json = nlohmann::json;

namespace {

/// Clients without a token of the file; each is a client with a share of its own.
constexpr std::array<std::string_view, 3> kOwnNames{"unix", "owner", "anyone"};

[[noreturn]] void fail(const std::string& why) { throw Error(ErrorKind::input, why); }

std::vector<std::string> words(const json& value, const std::string& what) {
  std::vector<std::string> result;
  if (!value.is_array() || value.empty()) fail(what + " must be a list of strings");
  for (const json& one : value) {
    if (!one.is_string()) fail(what + " must be a list of strings");
    result.push_back(one);
  }
  return result;
}

double above_zero(const json& token, const char* key, double otherwise, const std::string& where) {
  if (!token.contains(key)) return otherwise;
  if (!token[key].is_number() || !(token[key].get<double>() > 0)) fail(fmt::format("{}: {} must be above 0", where, key));
  return token[key];
}

Priority highest_priority(const json& token, const std::string& where) {
  if (!token.contains("priority")) return Priority::normal;
  const auto priority =
      token["priority"].is_string() ? parse_priority(token["priority"].get<std::string>()) : std::optional<Priority>();
  if (!priority) fail(where + ": priority, the highest that the token may ask for, must be high, normal or low");
  return *priority;
}

double expires_at(const json& token, const std::string& where) {
  if (!token.contains("expires")) return std::numeric_limits<double>::infinity();
  const auto time = token["expires"].is_string() ? parse_utc(token["expires"].get<std::string>()) : std::optional<double>();
  if (!time) fail(where + ": expires must be a time of UTC, as 2027-01-31T12:00:00Z or 2027-01-31");
  return *time;
}

Token parse_token(const json& value, const std::string& where) {
  static const std::set<std::string> known{"sha256",           "name",   "scopes",   "matrices",     "requests_per_second",
                                           "bytes_per_second", "weight", "priority", "memory_bytes", "expires"};
  if (!value.is_object()) fail(where + " must be an object");
  for (const auto& [key, unused] : value.items())
    if (!known.contains(key))
      fail(fmt::format("{}: there is no field \"{}\"; there are {}", where, key, fmt::join(known, ", ")));
  for (const char* key : {"sha256", "name"})
    if (!value.contains(key) || !value[key].is_string()) fail(fmt::format("{}: {} must be a string", where, key));
  Token token;
  const auto hash = parse_sha256(value["sha256"].get<std::string>());
  if (!hash) fail(where + ": sha256 must have 64 hexadecimal digits, as of: printf %s TOKEN | sha256sum");
  token.sha256 = *hash;
  std::vector<Scope> scopes;
  for (const std::string& word : words(value.value("scopes", json()), where + ": scopes")) {
    const auto scope = parse_scope(word);
    if (!scope)
      fail(fmt::format("{}: there is no scope \"{}\"; there are read, multiply, vectors, library, admin", where, word));
    scopes.push_back(*scope);
  }
  const auto matrices =
      value.contains("matrices") ? words(value["matrices"], where + ": matrices") : std::vector<std::string>{"*"};
  Rights rights(value["name"].get<std::string>(), scopes, matrices);
  rights.requests_per_second = above_zero(value, "requests_per_second", 0, where);
  rights.bytes_per_second = above_zero(value, "bytes_per_second", 0, where);
  rights.weight = above_zero(value, "weight", 1, where);
  rights.memory_bytes = static_cast<std::uint64_t>(std::clamp(above_zero(value, "memory_bytes", 0, where), 0.0, 1e18));
  if (value.contains("memory_bytes") && rights.memory_bytes == 0) fail(where + ": memory_bytes must be 1 or more");
  rights.highest = highest_priority(value, where);
  rights.expires = expires_at(value, where);
  token.rights = std::make_shared<Rights>(std::move(rights));
  return token;
}

}  // namespace

TokenTable TokenTable::parse(std::string_view text) {
  const json file = json::parse(text, nullptr, false);
  if (file.is_discarded()) fail("this is no JSON");
  if (!file.is_object() || file.size() != 1 || !file.contains("tokens") || !file["tokens"].is_array())
    fail("a token file has one field, \"tokens\", which is a list");
  TokenTable table;
  std::set<std::string> names;
  std::set<Sha256> hashes;
  for (std::size_t i = 0; i < file["tokens"].size(); ++i) {
    const std::string where = fmt::format("token {}", i + 1);
    Token token = parse_token(file["tokens"][i], where);
    if (token.rights->name().empty() || !names.insert(token.rights->name()).second)
      fail(where + ": its name must not be empty, and each token needs a name of its own");
    if (std::find(kOwnNames.begin(), kOwnNames.end(), token.rights->name()) != kOwnNames.end())
      fail(fmt::format("{}: {} is what the service calls its owner; choose another name", where, token.rights->name()));
    if (!hashes.insert(token.sha256).second) fail(where + " is there twice");
    table.add(std::move(token));
  }
  return table;
}

const Token* TokenTable::find(std::string_view secret) const {
  const Sha256 hash = sha256(secret);
  const Token* found = nullptr;
  for (const Token& token : tokens_)
    if (equal_in_constant_time(token.sha256, hash)) found = &token;
  return found;
}

void TokenTable::replace(const TokenTable& old) {
  for (const Token& before : old.tokens_) {
    const auto now =
        std::find_if(tokens_.begin(), tokens_.end(), [&](const Token& token) { return token.sha256 == before.sha256; });
    if (now == tokens_.end()) {
      before.rights->revoke();
    } else if (now->rights != before.rights) {
      *before.rights = *now->rights;
      now->rights = before.rights;
    }
  }
}

bool TokenTable::has_tenant(const std::string& tenant) const {
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const Token& token) { return token.rights->tenant() == tenant; });
}

TokenTable read_tokens(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(ErrorKind::input, fmt::format("{}: {}", file, std::strerror(errno)), "tokens");
  std::ostringstream text;
  text << stream.rdbuf();
  try {
    return TokenTable::parse(text.str());
  } catch (const Error& error) {
    throw Error(ErrorKind::input, fmt::format("{}: {}", file, error.what()), "tokens");
  }
}

std::string own_secret(const std::filesystem::path& file) {
  const auto fail = [&](const char* why) {
    throw Error(ErrorKind::resources, fmt::format("{}: {}", file.string(), why), "state");
  };
  int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor >= 0) {
    struct stat status {};
    char text[256];
    const bool safe = fstat(descriptor, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 077) == 0;
    const ssize_t size = read(descriptor, text, sizeof text);
    close(descriptor);
    if (!safe) fail("other users have access to the token (it needs mode 0600)");
    std::string secret(text, static_cast<std::size_t>(std::max<ssize_t>(0, size)));
    while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
    if (secret.size() < 32) fail("this is no token; remove the file, and another one is made");
    return secret;
  }
  if (errno != ENOENT) fail(std::strerror(errno));
  unsigned char random[32];
  if (getrandom(random, sizeof random, 0) != sizeof random) fail("there are no random numbers for a token");
  std::string secret;
  for (const unsigned char byte : random) secret += fmt::format("{:02x}", byte);
  descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) fail(std::strerror(errno));
  const std::string line = secret + "\n";
  const bool written = write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(descriptor);
  if (!written) {
    unlink(file.c_str());
    fail("the disk is full or read-only");
  }
  return secret;
}

}  // namespace shardmat::serve
