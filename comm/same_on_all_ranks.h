// Ranks that were given different options would compute a result that belongs to none of them.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace shardmat {

/// One thing that all ranks must be given alike.
struct Given {
  std::string name;   ///< for messages, as "--x" or "rtol"
  std::string value;  ///< as text
  std::string file;   ///< what this rank finds in the file that `value` names (file_digest.h); empty: it names none here
};

/// `number` with all its digits.
Given given_number(const char* name, double number);

/// Throws the same Error(usage) on all ranks if a rank was given something else than rank 0, and names it. Contents of files
/// are compared where both ranks find the file. Collective.
void require_same_on_all_ranks(Communicator& ranks, const std::vector<Given>& given);

}  // namespace shardmat
