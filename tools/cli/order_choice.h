// Which order of the rows and which way to cut them a file gets: those with which an iteration is predicted to take least.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "partition/source/row_source.h"

namespace shardmat::tools {

/// What there is to choose from.
struct OrderChoices {
  std::vector<RowOrder> orders;      ///< at least one, the simplest first
  std::vector<std::string> methods;  ///< at least one
  std::vector<int> parts;            ///< ascending, at least one; the last decides
  std::string model;                 ///< JSON report of bench scaling; empty: h200_model()
  bool allow_nonfinite = false;
};

struct OrderChoice {
  std::unique_ptr<RowSource> rows;  ///< the source in the order chosen; null: as it comes
  std::string method;
  std::string table;  ///< of all that were compared, for people; at most 125 columns
};

/// The best for the most parts; one that is not 1 % better than a simpler one is not taken. Orders are made one after the
/// other and rows streamed through them, so that beside the source (for rcm and graph: the whole matrix) no more than two
/// orders are held, 24 bytes a row each. An order that there is no memory for is left out, and the table says so; the first
/// one throws. Keeps a reference to `source`.
OrderChoice choose_order(const RowSource& source, const OrderChoices& choices);

}  // namespace shardmat::tools
