// Matrices, vectors and right results for the scenarios.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"
#include "tools/bench/service/server.h"

namespace shardmat::tools::service_bench {

/// A folder of shard files, and the backend on which they are multiplied.
class MatrixFolder {
 public:
  MatrixFolder(const std::filesystem::path& path, std::string backend);

  const std::filesystem::path& path() const { return path_; }
  const std::string& backend() const { return backend_; }
  bool on_gpus() const { return backend_ == "cuda"; }
  /// Writes the matrix of a file or of a generator once, and returns the file's name. Throws what its reader throws.
  std::string add(const std::string& matrix);

 private:
  std::filesystem::path path_;
  std::string backend_;
  std::map<std::string, std::string> files_;
};

/// Loads a file of the library for products and for solves. Throws Error(resources) if the service cannot.
Resident load_solvable(const Server& server, const std::string& source, const std::string& name = "m");

/// Vectors with entries between -1 and 1, one after another.
HostVector<std::byte> random_vectors(const Resident& matrix, std::int64_t count, std::uint64_t seed);

/// Requests with a vector each.
struct Products {
  HostVector<std::byte> x;
  std::vector<HostVector<std::byte>> y;
  std::vector<Request> requests;
};
/// Asks for `checked` of the products alone; those have their results as what is expected of every later reply.
Products make_products(Server& server, const Resident& matrix, std::size_t count, std::size_t checked);

/// The same with vectors that stay: each request has an x and a y of its own.
struct ResidentProducts {
  std::vector<std::string> y;  ///< ids
  std::vector<Request> requests;
};
ResidentProducts make_resident_products(Server& server, const Resident& matrix, const Products& products);
/// True if the vectors y have the results that `products` has.
bool are_right(Server& server, const ResidentProducts& resident, const Products& products);

/// Y for columns of X. On the host of the library: `shardmat multiply` with the service's exchange and number of ranks. The
/// kernel is the model's choice, as in the service. On GPUs, where the choice is measured: the service's own, one by one.
HostVector<std::byte> expected_products(const MatrixFolder& library, Server& server, const Resident& matrix,
                                        const HostVector<std::byte>& x);
/// Median seconds of one product of `shardmat multiply`, with the service's exchange and number of ranks.
double bare_product_seconds(const MatrixFolder& library, const Resident& matrix, int ranks, int products);

}  // namespace shardmat::tools::service_bench
