// What the service tells its operator.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardmat::serve {

/// One line on standard error, with the time. Never blocks, whoever reads it: a line that finds no room is counted.
void log_line(std::string text);
/// A line of the log with its time. Numbers rise by one.
struct LoggedLine {
  std::uint64_t number = 0;
  std::string text;
};
/// The newest lines with higher numbers than `after`; some hundred are kept.
std::vector<LoggedLine> newest_log_lines(std::uint64_t after);
/// The line "shardmat: …" that says why the process ends.
void error_line(const std::string& text);
/// Lines that were lost, because nobody read them or they could not be written.
std::uint64_t lost_log_lines();

}  // namespace shardmat::serve
