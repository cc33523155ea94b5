#include "tools/commands/spy.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "partition/files/atomic_file.h"
#include "partition/files/output_file.h"
#ifdef SHARDMAT_HAVE_PNG
#include <png.h>
#endif

namespace shardmat::tools {
namespace {

/// Of `count`, shrunk by the factor that makes `longest` as long as `size`.
std::int64_t shrunk(std::int64_t count, std::int64_t longest, std::int64_t size) {
  if (longest <= size) return std::max<std::int64_t>(1, count);
  const double scaled = static_cast<double>(count) * static_cast<double>(size) / static_cast<double>(longest);
  return std::clamp<std::int64_t>(std::llround(scaled), 1, size);
}

}  // namespace

Spy::Spy(std::int64_t rows, std::int64_t cols, std::int64_t size)
    : rows_(rows),
      cols_(cols),
      height_(shrunk(rows, std::max(rows, cols), size)),
      width_(shrunk(cols, std::max(rows, cols), size)),
      zoom_(std::max<std::int64_t>(1, size / std::max(height_, width_))) {
  counts_.assign(static_cast<std::size_t>(height_ * width_), 0);
}

void Spy::add(std::int64_t first_row, const CsrView& slice) {
  const double down = static_cast<double>(height_) / static_cast<double>(rows_),
               right = static_cast<double>(width_) / static_cast<double>(cols_);
  const auto pixel = [](std::int64_t index, double scale, std::int64_t most) {
    return std::min(static_cast<std::int64_t>((static_cast<double>(index) + 0.5) * scale), most - 1);
  };
  parallel_ranges(slice.rows, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t base = slice.row_ptr[0], last = slice.row_ptr[static_cast<std::size_t>(r) + 1] - base;
      std::int64_t* const line = counts_.data() + pixel(first_row + r, down, height_) * width_;
      for (std::int64_t k = slice.row_ptr[static_cast<std::size_t>(r)] - base; k < last; ++k) {
        std::int64_t& count = line[pixel(slice.col_idx[static_cast<std::size_t>(k)], right, width_)];
        std::atomic_ref<std::int64_t>(count).fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
}

#ifdef SHARDMAT_HAVE_PNG

void require_png() {}

void Spy::write_png(const std::filesystem::path& path) const {
  const double most = std::log(static_cast<double>(std::max<std::int64_t>(1, *std::ranges::max_element(counts_))));
  const auto shade = [&](std::int64_t count) {
    constexpr double kLightest = 0.75;  // of one nonzero among many, still to be seen on white
    if (count == 0) return static_cast<unsigned char>(255);
    const double depth = most > 0 ? std::log(static_cast<double>(count)) / most : 1;
    return static_cast<unsigned char>(std::lround(255 * kLightest * (1 - depth)));
  };
  const std::int64_t width = width_ * zoom_, height = height_ * zoom_;
  std::vector<unsigned char> pixels(static_cast<std::size_t>(width * height));
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      pixels[static_cast<std::size_t>(y * width + x)] =
          shade(counts_[static_cast<std::size_t>(y / zoom_ * width_ + x / zoom_)]);

  AtomicFile file(path);
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_GRAY;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string png(bytes, '\0');
  if (png_image_write_to_memory(&image, png.data(), &bytes, 0, pixels.data(), 0, nullptr) == 0)
    fail_write(path, image.message);
  OutputFile out(file);
  out.append(std::string_view(png).substr(0, bytes));
  out.close();
  file.commit();
}

#else

void require_png() {
  throw Error(ErrorKind::usage,
              "this build draws no pictures because libpng was not found; install libpng-dev and build again");
}

void Spy::write_png(const std::filesystem::path&) const { require_png(); }

#endif

}  // namespace shardmat::tools
