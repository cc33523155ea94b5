#include "partition/hdf5/library.h"

#include <cstdlib>
#include <cstring>
#include <vector>

namespace shardmat {

void silence_hdf5() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);
}

std::string hdf5_reason() {
  std::vector<std::string> descriptions;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* list) -> herr_t {
        if (error->desc != nullptr) static_cast<std::vector<std::string>*>(list)->emplace_back(error->desc);
        return 0;
      },
      &descriptions);
  for (const std::string& text : descriptions)
    if (const auto at = text.find("errno = "); at != std::string::npos)
      if (const int code = std::atoi(text.c_str() + at + 8); code != 0) return std::strerror(code);
  return descriptions.empty() ? "HDF5 gives no reason" : "HDF5: " + descriptions.front();
}

}  // namespace shardmat
