// The headers that most files of every layer include: see precompiled.cmake. A file includes all that it uses all the same.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
