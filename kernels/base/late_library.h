// Libraries of CUDA that are loaded when they are first used: a program starts sooner, and needs none of them where it uses
// no GPU.
#pragma once

#include <string>

namespace shardmat {

struct LateLibrary {
  const char* name;     ///< as people call it: "NCCL"
  const char* file;     ///< what the loader looks for: "libnccl.so.2"
  const char* folder;   ///< where the build found it; looked into if the loader does not find it
  std::string version;  ///< of the build
  std::string package;  ///< what to install
};

/// Stays loaded until the program ends. Throws Error(resources) if there is none. Any thread may call it.
void* load(const LateLibrary& library);

namespace late_library {
void* find(void* loaded, const LateLibrary& library, const char* function);
}

/// Sets `function` to that of this name. Throws Error(resources) if the library has none.
template <class F>
void find(void* loaded, const LateLibrary& library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(late_library::find(loaded, library, name));
}

}  // namespace shardmat
