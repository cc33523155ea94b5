#include "runtime/solvers/multigrid/free_bodies.h"

#include <memory>

#include "comm/communicator.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/multigrid/free_modes.h"
#include "runtime/solvers/multigrid/known_nodes.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {

NullVectors find_free_bodies(RowSource& source) {
  Communicator alone = Communicator::alone();
  Context context(alone, BackendChoice::host);
  MatrixSource of_one;
  of_one.rows = {std::shared_ptr<void>(), &source};  // owns nothing
  DistributedMatrix matrix(of_one, context, {});
  MultigridOptions known;
  take_known_nodes(matrix, known);
  NullVectors found = multigrid::free_modes(matrix, known, nullptr);
  found.of_own.clear();
  return found;
}

}  // namespace shardmat
