// What a browser gets of the service's page: its files, and the page itself, which says in plain HTML how the service is,
// for browsers without JavaScript.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tools/serve/http/http_message.h"

namespace shardmat::serve {

/// A file of the folder page/; 404 for anything else; 304 for a browser that has it.
Reply page_file_reply(const RequestHead& head, std::string_view name);

/// What the page says without JavaScript. Members of JSON are those of Live.
struct PlainStatus {
  const nlohmann::ordered_json &now, &ranks, &matrices, &jobs;
};
/// The page. `status`: null if the client is not known: then it asks for a token. `message`: what is wrong with the one that
/// was given; empty if nothing is.
Reply page_reply(const RequestHead& head, const PlainStatus* status, std::string_view message = "");

/// The value of a field of a form (application/x-www-form-urlencoded); empty if it is not there, or malformed.
std::string form_field(std::string_view form, std::string_view name);

}  // namespace shardmat::serve
