// A program's own header that has the name of one of the package's.
#pragma once

namespace own {
struct Communicator {
  int phones = 2;
};
}  // namespace own
