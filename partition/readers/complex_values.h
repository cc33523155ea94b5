// What readers say of complex values where real ones are wanted, and of real values where the parts of complex ones are.
#pragma once

#include <string>

namespace shardmat {

/// `file`: the matrix file, as the user named it.
inline std::string complex_matrix_refused(const std::string& file) {
  return "its values are complex; write its real equivalent, with a 2 × 2 block for each value: shardmat convert --complex "
         "as-real " +
         file + " REAL.h5";
}
inline std::string complex_vector_refused(const std::string& file) {
  return "its numbers are complex; write the real and the imaginary part of each, one behind the other: shardmat convert "
         "--complex as-real " +
         file + " REAL.npy";
}
/// In a format that is not read with complex values.
inline constexpr const char* kComplexElsewhere =
    "write the matrix with scipy.sparse.save_npz or scipy.io.mmwrite, and then its real equivalent: shardmat convert "
    "--complex as-real A.npz A.h5";
inline constexpr const char* kNotComplex = "its values are real, so it has no real equivalent; take it as it is";

}  // namespace shardmat
