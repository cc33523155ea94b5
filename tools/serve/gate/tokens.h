// The tokens by which clients say who they are. Only their SHA-256 is known here.
//
// Threads: one at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/serve/gate/sha256.h"
#include "tools/serve/words/rights.h"

namespace shardmat::serve {

struct Token {
  Sha256 sha256{};
  std::shared_ptr<Rights> rights;  ///< requests under way share it, and see what becomes of it
};

class TokenTable {
 public:
  /// The text of a token file. Throws Error(input), which says what is wrong and in which token.
  static TokenTable parse(std::string_view text);

  void add(Token token) { tokens_.push_back(std::move(token)); }
  /// Null if there is no such token. Takes the same time for every wrong one.
  const Token* find(std::string_view secret) const;
  std::size_t size() const { return tokens_.size(); }
  /// This table takes the place of another one. Tokens of both keep the rights object of the old one, with the content of
  /// the new one. The rights of all other old ones are revoked.
  void replace(const TokenTable& old);
  /// True if vectors may be of this tenant.
  bool has_tenant(const std::string& tenant) const;

 private:
  std::vector<Token> tokens_;
};

/// Reads a token file. Throws Error(input).
TokenTable read_tokens(const std::string& file);

/// The secret of the token in `file` (0600), which is made if it is not there. Throws Error(resources) if it cannot be
/// written, or can be read by others.
std::string own_secret(const std::filesystem::path& file);

}  // namespace shardmat::serve
