// The generation of a matrix's values, in requests and answers.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tools/serve/http/http_message.h"
#include "tools/serve/ranks/matrix.h"

namespace shardmat::serve {

/// The generation that If-Match names; nothing for "*" and without the field.
std::variant<std::optional<std::uint64_t>, Problem> wanted_generation(const RequestHead& head);
/// 412 unless the matrix has it.
std::optional<Problem> check_generation(const Matrix& matrix, const std::optional<std::uint64_t>& wanted);
/// The header field that tells a generation.
std::pair<std::string, std::string> generation_field(std::uint64_t generation);
/// A reply about a matrix; it tells the generation if the matrix is loaded.
Reply about(Reply reply, const Matrix* matrix);

}  // namespace shardmat::serve
