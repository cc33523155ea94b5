// Numbers for requests of `shardmat client`: from files, or vectors that stay in the service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "kernels/base/host_vector.h"
#include "kernels/base/types.h"
#include "tools/client/client_service.h"

namespace shardmat::tools {

/// True for what is no file: the id of a vector, as make-vector prints it. A file of this name is ./NAME.
inline bool is_vector_id(const std::string& text) { return text.starts_with("vec-"); }
/// The same of a job.
inline bool is_job_id(const std::string& text) { return text.starts_with("job-"); }

/// What the service says of a vector. Throws Error(input) if there is none.
nlohmann::ordered_json find_vector(HttpClient& client, const std::string& id);

/// The columns of a file with `rows` rows, one after another, as bytes of this type. Throws Error(input) if they do not fit.
HostVector<std::byte> bytes_of_file(const std::string& file, const std::string& dataset, std::int64_t rows,
                                    std::int64_t columns, ValueType type, const std::string& of);

/// A vector of the service with the numbers of a file, for as long as this lives.
class NewVector {
 public:
  /// As an x of the matrix that the service describes so.
  NewVector(HttpClient& client, const nlohmann::ordered_json& matrix, const std::string& file, const std::string& dataset,
            std::int64_t columns);
  ~NewVector();
  NewVector(const NewVector&) = delete;
  NewVector& operator=(const NewVector&) = delete;

  const std::string& id() const { return id_; }

 private:
  HttpClient& client_;
  std::string id_;
};

}  // namespace shardmat::tools
