// For builds without cuBLAS.
#include "tools/bench/textbook_cg.h"

namespace shardmat::tools {

std::unique_ptr<TextbookCg> make_textbook_cg(const HostCsr&, const std::string&, int, Stream&) { return nullptr; }

}  // namespace shardmat::tools
