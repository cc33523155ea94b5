// Jobs as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/serve/ranks/rank_job.h"

namespace shardmat::serve {

nlohmann::ordered_json to_json(const RankJob& job, bool with_history);

}  // namespace shardmat::serve
