#include "runtime/service/engine/resident_transpose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/maps/row_map.h"
#include "runtime/service/engine/column_places.h"

namespace shardmat::service {

Multiplied ResidentTranspose::multiply(const Multiply& command, Memories& memories, const ResidentVectors& vectors) {
  const bool blocks = command.x_block != 0 || command.y_block != 0;
  if (blocks && std::ssize(command.columns) != command.width)
    throw AgreedError(ErrorKind::internal, fmt::format("a block of {} columns is not {} columns wide",
                                                       std::ssize(command.columns), command.width));
  const auto is_unlike = [&](const Column& one) {
    return one.alpha != command.columns.front().alpha || one.beta != command.columns.front().beta;
  };
  if (std::any_of(command.columns.begin(), command.columns.end(), is_unlike))
    throw AgreedError(ErrorKind::internal, "a product with the transpose has one alpha and one beta for all its columns");
  const TransposedProduct& made = product(command.width);
  Multiplied times;
  const std::span<const Column> columns = command.columns;
  const auto width = static_cast<std::size_t>(command.width);
  for (std::size_t first = 0; first < columns.size(); first += width) {
    const Multiplied more =
        multiply(made, command, columns.subspan(first, std::min(width, columns.size() - first)), memories, vectors);
    times.copy_in += more.copy_in, times.product += more.product, times.copy_out += more.copy_out;
  }
  return times;
}

const TransposedProduct& ResidentTranspose::product(std::int64_t width) {
  if (const auto found = products_.find(width); found != products_.end()) return *found->second;
  std::unique_ptr<TransposedProduct> made = matrix_.transposed_product(width);
  Context& context = matrix_.context();
  Buffer x, y;
  context.communicator().run_agreed([&] {
    const auto room_for = [&](const Dense& block, const RowMap& map, Buffer& now, Buffer& wider) {
      transfer_.reserve(block, map);
      const std::size_t bytes = static_cast<std::size_t>(block.rows * block.leading) * size_of(block.type);
      if (bytes <= now.bytes()) return;
      require_memory(context.device(), static_cast<std::int64_t>(bytes), "a vector of products with the transpose");
      wider = Buffer(context.device(), bytes);
    };
    room_for(made->x_view(nullptr), *matrix_.y_rows(), x_, x);
    room_for(made->y_view(nullptr), *matrix_.x_rows(), y_, y);
  });
  if (x.bytes() > 0) x_ = std::move(x);
  if (y.bytes() > 0) y_ = std::move(y);
  return *(products_[width] = std::move(made));
}

Multiplied ResidentTranspose::multiply(const TransposedProduct& product, const Multiply& command,
                                       std::span<const Column> columns, Memories& memories, const ResidentVectors& vectors) {
  Stream& stream = matrix_.context().stream();
  const RowMap &of_x = *matrix_.y_rows(), &of_y = *matrix_.x_rows();
  const ValueType type = matrix_.type();
  const double alpha = columns.front().alpha, beta = columns.front().beta;
  ColumnPlaces places{transfer_, memories, vectors, stream};
  std::vector<Place> x_places, y_places;  // outside this rank's memory
  std::vector<Column> written(columns.begin(), columns.end());
  for (Column& one : written) {
    if (command.x_block == 0 && one.x.vector == 0) x_places.push_back(one.x);
    if (command.y_block == 0 && one.y.vector == 0) y_places.push_back(one.y);
    one.alpha = 1, one.beta = 0;  // those are applied by the product, to get its bits
  }
  Multiplied times;
  const Timer timer;
  memories.fetch(x_places, of_x, type);
  memories.fetch(beta != 0 ? y_places : std::vector<Place>(), of_y, type);
  ConstDense x = product.x_view(x_.data());
  if (command.x_block != 0) x = vectors.view(command.x_block, of_x, type, command.width);
  else places.take(columns, &Column::x, of_x, product.x_view(x_.data()));
  Dense y = product.y_view(y_.data());
  if (command.y_block != 0) {
    y = vectors.view(command.y_block, of_y, type, command.width);
  } else if (beta != 0) {
    stream.synchronize();  // Memories::at() asks for it
    places.take(columns, &Column::y, of_y, y);
  }
  times.copy_in = timer.seconds();
  product.multiply(alpha, x, beta, y, stream);
  product.wait(stream);
  times.product = timer.seconds() - times.copy_in;
  if (command.y_block == 0) places.give(y, of_y, written);
  memories.deliver(y_places, of_y, type);
  times.copy_out = timer.seconds() - times.copy_in - times.product;
  return times;
}

std::int64_t ResidentTranspose::device_bytes() const {
  std::int64_t bytes = static_cast<std::int64_t>(x_.bytes() + y_.bytes());
  for (const auto& [width, product] : products_) bytes += product->device_bytes();
  return bytes;
}

}  // namespace shardmat::service
