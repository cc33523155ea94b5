// Which files of the library may be loaded.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/handlers/text_job.h"
#include "tools/serve/observe/service_json.h"

namespace shardmat::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 500;
constexpr int kMostLevels = 3;
/// Entries that are looked at, so that a library in the wrong place costs little.
constexpr int kMostEntries = 20000;

bool is_hidden(const fs::path& path) { return path.filename().native().front() == '.'; }

/// Regular files by their paths in the library; links are left out. What cannot be read is left out, too.
nlohmann::ordered_json files_of(const fs::path& library) {
  std::vector<std::pair<std::string, std::uintmax_t>> files;
  bool all = true;
  std::error_code error;
  fs::recursive_directory_iterator entry(library, fs::directory_options::skip_permission_denied, error);
  for (int seen = 0; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (++seen > kMostEntries || files.size() >= kMostFiles) {
      all = false;
      break;
    }
    std::error_code ignored;
    if (is_hidden(entry->path()) || entry.depth() + 1 >= kMostLevels) entry.disable_recursion_pending();
    if (is_hidden(entry->path()) || entry->is_symlink(ignored) || !entry->is_regular_file(ignored)) continue;
    files.emplace_back(entry->path().lexically_relative(library).string(), entry->file_size(ignored));
  }
  std::sort(files.begin(), files.end());
  nlohmann::ordered_json answer{{"files", nlohmann::ordered_json::array()}, {"all", all}};
  for (const auto& [source, bytes] : files) answer["files"].push_back({{"source", source}, {"bytes", bytes}});
  return answer;
}

}  // namespace

void add_library_routes(Routes& routes, const Parts& parts) {
  routes.add({"GET", "/v1/library", Scope::admin, "library",
              [&service = parts.service, library = parts.library](const Call& call) -> Accepted {
                return take_text(call, [&service, library](std::string_view, const std::function<void(Reply)>& done) {
                  const auto answer = std::make_shared<nlohmann::ordered_json>();
                  service.background().run([library, answer] { *answer = files_of(library); },
                                           [answer, done] { done(json_reply(200, *answer)); });
                });
              }});
}

}  // namespace shardmat::serve
