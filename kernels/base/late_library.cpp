#include "kernels/base/late_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "kernels/base/error.h"

namespace shardmat {

void* load(const LateLibrary& library) {
  void* loaded = dlopen(library.file, RTLD_NOW | RTLD_LOCAL);
  if (loaded != nullptr) return loaded;
  const char* why = dlerror();
  const std::string first = why == nullptr ? library.file : why;
  loaded = dlopen(fmt::format("{}/{}", library.folder, library.file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded != nullptr) return loaded;
  throw Error(ErrorKind::resources,
              fmt::format("{} {} cannot be loaded: {}; nor is it in {}. Install {}, put the library's folder into "
                          "LD_LIBRARY_PATH, or run on the host backend",
                          library.name, library.version, first, library.folder, library.package),
              "backend");
}

void* late_library::find(void* loaded, const LateLibrary& library, const char* function) {
  void* const found = dlsym(loaded, function);
  if (found == nullptr)
    throw Error(ErrorKind::resources, fmt::format("{} ({}) has no function {}; install the version of the build, {}: {}",
                                                  library.name, library.file, function, library.version, library.package));
  return found;
}

}  // namespace shardmat
