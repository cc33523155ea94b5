// Looks at what ranks run on, and names what makes runs fail, wait or go slow: `shardmat doctor`. Each check is a file in
// checks/ and a line in check_list.cpp.
//
// Threads: one thread of each rank.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"

namespace shardmat::doctor {

/// Something that should be changed.
struct Finding {
  std::string name;    ///< the same in every run, for scripts: "small_dev_shm"
  std::string what;    ///< what was found, and where
  std::string why;     ///< why it matters
  std::string remedy;  ///< what to do
};

struct Options {
  bool measure = true;  ///< also what takes time: load by other programs, links, clocks, health of GPUs
  double seconds = 4;   ///< no measurement of a link begins later than so long after the start
  std::string program;  ///< version of the program, for the comparison over ranks
  std::string root;     ///< tests: the folder that stands for /. "{rank}" in it becomes the rank's number
};

/// A part of the report: what one check saw.
struct Section {
  std::string name, title;
  std::vector<std::pair<std::string, std::string>> rows;  ///< label and value
};

struct Report {
  int ranks = 1;
  double seconds = 0;  ///< that this examination took
  std::vector<Finding> findings;
  std::vector<Section> sections;
  std::string facts;        ///< all facts of all ranks: a JSON array
  std::exception_ptr lost;  ///< an Error(rank_lost): a rank was lost while links were measured; the communicator is broken
};

/// Collective; the same report on all ranks. Needs a communicator, and nothing else that could fail: what cannot be looked
/// at is reported with the reason.
Report examine(Communicator& communicator, const Options& options);

/// Names of the findings of checks that take no time. For reports of other work. Collective.
std::vector<std::string> quick_findings(Communicator& communicator);

/// A table of each section, and the findings. `colour`: with the escape sequences of a terminal.
std::string to_text(const Report& report, bool colour = false);
std::string to_json(const Report& report);

}  // namespace shardmat::doctor
