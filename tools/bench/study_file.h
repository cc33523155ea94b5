// A scaling study that goes on where it was stopped: its JSON file is whole after every case.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/bench/scaling_report.h"

namespace shardmat::tools {

/// The text of an unfinished study in the file `path`; empty if there is no such file, or another one, which the study
/// replaces. Throws Error(usage) naming what differs if it was asked for with other options than `asked`, a JSON object.
std::string unfinished_study(const std::string& path, const std::string& asked);

/// A case of a study's JSON, with all figures that table, notes, CSV and forecasts use.
ScalingCase read_case(const nlohmann::ordered_json& json);
/// Puts what the text of a study has into `study`: the cases of its plan (to_come, solves without figures) that were
/// measured, and its runs.
void take_measured(const std::string& text, ScalingStudy& study, std::vector<SolveCase>& solves_to_come);

}  // namespace shardmat::tools
