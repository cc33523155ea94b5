// Products of batches of many small matrices that come with their requests: those of several requests are one product. Each
// matrix is multiplied by one rank, whole. Ranks on other hosts than the front end's have none of them.
//
// Threads: that of the engine.
#pragma once

#include <vector>

#include "runtime/context/context.h"
#include "runtime/service/engine/memories.h"
#include "runtime/service/wire/command.h"

namespace shardmat::service {

class Batches {
 public:
  /// Collective. REQUIRES: both outlive this object.
  Batches(Context& context, Memories& memories, bool at_home);

  /// What is wrong with a request is said of it alone; the others are multiplied. Collective; the same error on all ranks:
  /// Error(resources) without memory, before any is taken.
  BatchesMultiplied multiply(const MultiplyBatches& command);

 private:
  struct Range;
  struct Piece;
  std::vector<Range> own_ranges(const MultiplyBatches& command, std::vector<std::string>& wrong);
  void require_room(const std::vector<Range>& ranges) const;
  std::vector<Piece> make_pieces(const MultiplyBatches& command, const std::vector<Range>& ranges,
                                 std::vector<std::string>& wrong);
  Multiplied multiply(const std::vector<Piece>& pieces, const BatchShape& like);

  Context& context_;
  Memories& memories_;
  int place_ = -1;  ///< of this rank among those at home; -1: it is not there
  int at_home_ = 0;
};

}  // namespace shardmat::service
