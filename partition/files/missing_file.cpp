#include "partition/files/missing_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat {

void fail_missing(const std::filesystem::path& path) {
  if (path.empty())
    throw Error(ErrorKind::input, "the name of a file to read is empty; is a variable of your script unset?");
  for (std::filesystem::path file = path.parent_path(); !file.empty() && file != file.parent_path();
       file = file.parent_path())
    if (std::error_code none; std::filesystem::is_regular_file(file, none))
      throw Error(ErrorKind::input,
                  fmt::format("{}: there is no such file. {} is a file; name an object in it with a colon, "
                              "as {}:{}",
                              path.string(), file.string(), file.string(), path.lexically_relative(file).string()));
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  for (std::filesystem::directory_iterator i(directory, error), end; !error && i != end; i.increment(error))
    names.push_back(i->path().filename().string());
  std::sort(names.begin(), names.end());  // the order of a directory is anyone's
  const std::string near = nearest(path.filename().string(), names);
  throw Error(
      ErrorKind::input,
      fmt::format("{}: there is no such file; {}", path.string(),
                  near.empty() ? "check the path" : fmt::format("did you mean {}?", (path.parent_path() / near).string())));
}

}  // namespace shardmat
