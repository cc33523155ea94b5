// The files of the page, which the build takes from this folder.
#pragma once

#include <span>
#include <string_view>

namespace shardmat::serve {

struct PageFile {
  std::string_view name, text;
};
std::span<const PageFile> page_files();

}  // namespace shardmat::serve
