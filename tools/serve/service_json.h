// Matrices and ranks as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "tools/serve/http_message.h"
#include "tools/serve/service.h"

namespace shardmat::serve {

nlohmann::ordered_json to_json(const Matrix& matrix);
nlohmann::ordered_json to_json(const Matrices& matrices);
/// State of the service, its ranks and its arena.
nlohmann::ordered_json ranks_json(const Service& service);
Reply json_reply(int status, const nlohmann::ordered_json& json);

/// Throws Error(input) with the example for text that is no JSON, or too deep.
nlohmann::ordered_json parse_json(std::string_view text, const char* example);

/// The body of a load. Throws Error(input), which says what is wrong, for anything else than the fields that it has.
WantedMatrix parse_load(const std::string& name, std::string_view body);

}  // namespace shardmat::serve
