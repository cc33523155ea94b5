// A program with folders comm and kernels of its own beside the package's headers.
#include <shardmat/comm/communicator.h>
#include <shardmat/runtime/matrix/distributed_matrix.h>

#include <cstdio>
#include <cstring>
#include <type_traits>

#include "comm/communicator.h"
#include "kernels/base/error.h"

static_assert(!std::is_same_v<own::Communicator, shardmat::Communicator>);

int main() {
  const shardmat::Error error(shardmat::ErrorKind::input, "theirs");
  const bool right = own::Communicator().phones == 2 && std::strcmp(own::error(), "none") == 0 &&
                     std::strcmp(error.what(), "theirs") == 0 && shardmat::MatrixOptions().right_hand_sides == 1;
  if (right) std::puts("a program keeps its own comm and kernels");
  return right ? 0 : 1;
}
