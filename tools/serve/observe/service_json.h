// Matrices and ranks as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "tools/serve/http/http_message.h"
#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

nlohmann::ordered_json to_json(const Matrix& matrix);
/// The solvers of a matrix that stay on the ranks.
nlohmann::ordered_json solvers_json(const Matrix& matrix);
/// Adds "saved" and, if the state file could not be written, "warning" to an answer about a matrix of this name.
void add_saved(nlohmann::ordered_json& answer, const Service& service, const std::string& name);
/// State of the service, its ranks and its arena.
nlohmann::ordered_json ranks_json(const Service& service, const Rights& rights);
Reply json_reply(int status, const nlohmann::ordered_json& json);

/// Text as JSON: an object of no great depth. Throws Error(input), which shows the example, for anything else.
nlohmann::ordered_json parse_json(std::string_view text, std::string_view example);
/// The body of a load. Throws Error(input), which says what is wrong, for anything else than the fields that it has.
WantedMatrix parse_load(const std::string& name, std::string_view body);
/// The body of a pin: {"pinned": true}. Throws Error(input) for anything else.
bool parse_pin(std::string_view body);

}  // namespace shardmat::serve
