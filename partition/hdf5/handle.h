// Owns an identifier of the HDF5 library.
#pragma once

#include <cstdint>
#include <utility>

namespace shardmat {

/// Move-only; closing never throws.
class Hdf5Handle {
 public:
  using Close = int (*)(std::int64_t);
  Hdf5Handle() = default;
  Hdf5Handle(std::int64_t id, Close close) : id_(id), close_(close) {}
  ~Hdf5Handle() { reset(); }
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, -1)), close_(std::exchange(other.close_, nullptr)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, -1);
      close_ = std::exchange(other.close_, nullptr);
    }
    return *this;
  }

  std::int64_t id() const { return id_; }
  /// Closes now; true if nothing was open or HDF5 closed it without complaint.
  bool reset() noexcept {
    const std::int64_t id = std::exchange(id_, -1);
    return id < 0 || close_(id) >= 0;
  }

 private:
  std::int64_t id_ = -1;
  Close close_ = nullptr;
};

}  // namespace shardmat
