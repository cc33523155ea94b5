#include "tools/commands/format_table.h"

#include <fmt/format.h>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/choose/registry.h"

namespace shardmat::tools {
namespace {

FormatSize size_in(const Format& format, ConversionInput& input, double bandwidth) {
  FormatSize size;
  size.name = format.name;
  size.type = input.type();
  try {
    const Policy layout = format.layouts(input).front();
    size.layout = layout.text();
    size.bytes = format.bytes(input, layout);
    const auto vectors = static_cast<double>(input.value_bytes() * (input.matrix().cols + input.matrix().rows));
    size.seconds = (static_cast<double>(size.bytes) + vectors) / bandwidth;
    if (size.bytes > largest_reasonable_bytes(input)) {
      const auto bytes = static_cast<double>(size.bytes), csr = static_cast<double>(find_format("csr").bytes(input, {}));
      size.refused = fmt::format("{} would be {:.0f} times as much as CSR", human_bytes(bytes), bytes / csr);
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    size.refused = error.what();
  }
  return size;
}

}  // namespace

std::vector<FormatSize> format_sizes(ConversionInput& input, double bandwidth) {
  std::vector<FormatSize> sizes;
  for (const Format& format : formats()) sizes.push_back(size_in(format, input, bandwidth));
  return sizes;
}

std::string format_table(std::span<const FormatSize> sizes, std::int64_t nnz) {
  std::string text = "  format        type       bytes  a nonzero  one product  layout\n";
  for (const FormatSize& size : sizes) {
    const auto bytes = static_cast<double>(size.bytes);
    if (!size.refused.empty()) {
      text += fmt::format("  {:<12}  {:<4}  {:>10}  {}\n", size.name, name(size.type), "refused", size.refused);
      continue;
    }
    text += fmt::format("  {:<12}  {:<4}  {:>10}  {:>9}  {:>11}  {}\n", size.name, name(size.type), human_bytes(bytes),
                        nnz > 0 ? fmt::format("{:.2f} B", bytes / static_cast<double>(nnz)) : "-",
                        human_seconds(size.seconds), size.layout);
  }
  return text;
}

}  // namespace shardmat::tools
