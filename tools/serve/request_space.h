// What requests with bodies of numbers have in common: room in the arena, and the header fields that they share.
//
// Threads: the thread of the event loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "tools/serve/arena_space.h"
#include "tools/serve/http_message.h"
#include "tools/serve/matrix.h"
#include "tools/serve/service.h"

namespace shardmat::serve {

Problem make_problem(int status, std::string code, std::string text);

/// 413 if the arena is too small for `bytes` of numbers even when it is empty, else nothing.
std::optional<Problem> check_arena(const Service& service, std::uint64_t bytes, const std::string& what);
/// The arena is full: 429.
Problem arena_full();

/// 415 unless a body is raw numbers.
std::optional<Problem> check_content_type(const RequestHead& head);
/// 422 if the client named another type than the vectors or values have.
std::optional<Problem> check_type(const std::string& named, ValueType type, const std::string& of);

/// The generation that If-Match names: nothing for "*" and without the field.
std::variant<std::optional<std::uint64_t>, Problem> wanted_generation(const RequestHead& head);
/// 412 unless the matrix has it.
std::optional<Problem> check_generation(const Matrix& matrix, const std::optional<std::uint64_t>& wanted);
/// The header field that tells a matrix's generation.
std::pair<std::string, std::string> generation_field(std::uint64_t generation);
/// A reply about a matrix; it tells the generation if the matrix is loaded.
Reply about(Reply reply, const Matrix* matrix);

}  // namespace shardmat::serve
