// A program's own header that has the name of one of the package's.
#pragma once

namespace own {
inline const char* error() { return "none"; }
}  // namespace own
