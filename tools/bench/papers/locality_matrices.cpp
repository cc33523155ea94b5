// Thirty matrices for paper 4, by generators: from reads in a row to reads anywhere, even rows and uneven ones. The text's
// sixteen are not shipped; name their files to measure them.
#include "tools/bench/papers/locality.h"

namespace shardmat::tools {
namespace {

constexpr std::size_t kTiny = 8;
constexpr MatrixClass kMatrices[] = {
    // The first eight stand for their kinds; they alone are measured in size tiny.
    {"elasticity", {"elasticity:n=8", "elasticity:n=24", "elasticity:n=64"}},
    {"poisson27", {"poisson27:n=12", "poisson27:n=48", "poisson27:n=128"}},
    {"poisson7", {"poisson7:n=16", "poisson7:n=64", "poisson7:n=192"}},
    {"rmat", {"rmat:scale=11", "rmat:scale=16", "rmat:scale=20"}},
    {"random 16", {"random:n=2000", "random:n=100000", "random:n=1048576"}},
    {"dense band", {"banded:n=3000", "banded:n=100000", "banded:n=1000000"}},
    {"5 diagonals", {"diagonals:n=5000,spacing=70", "diagonals:n=500000,spacing=1000", "diagonals:n=4194304,spacing=4096"}},
    {"triangle 40",
     {"random:n=2000,row_nnz=40,triangular", "random:n=50000,row_nnz=100,triangular",
      "random:n=500000,row_nnz=100,triangular"}},
    {"elasticity plate", {"", "elasticity:n=80,nz=3", "elasticity:n=300,nz=3"}},
    {"elasticity bar", {"", "elasticity:n=12,nx=400", "elasticity:n=20,nx=2000"}},
    {"poisson hexahedra", {"", "poisson:n=48", "poisson:n=128"}},
    {"poisson plate", {"", "poisson27:n=300,nz=2", "poisson27:n=1200,nz=2"}},
    {"poisson bar", {"", "poisson27:n=12,nx=800", "poisson27:n=24,nx=4000"}},
    {"5-point grid", {"", "poisson7:n=500,nz=1", "poisson7:n=2000,nz=1"}},
    {"5-point strip", {"", "poisson7:n=16,nx=16000,nz=1", "poisson7:n=16,nx=250000,nz=1"}},
    {"7-point bar", {"", "poisson7:n=12,nx=2000", "poisson7:n=24,nx=8000"}},
    {"rmat, 4 a row", {"", "rmat:scale=17,edge_factor=4", "rmat:scale=21,edge_factor=4"}},
    {"rmat, 1 a row", {"", "rmat:scale=18,edge_factor=1", "rmat:scale=22,edge_factor=1"}},
    {"rmat, even",
     {"", "rmat:scale=17,edge_factor=4,a=0.25,b=0.25,c=0.25", "rmat:scale=21,edge_factor=4,a=0.25,b=0.25,c=0.25"}},
    {"rmat, steep", {"", "rmat:scale=16,edge_factor=8,a=0.7,b=0.1,c=0.1", "rmat:scale=20,edge_factor=8,a=0.7,b=0.1,c=0.1"}},
    {"random 3", {"", "random:n=300000,row_nnz=3", "random:n=2097152,row_nnz=3"}},
    {"random 100", {"", "random:n=20000,row_nnz=100", "random:n=262144,row_nnz=100"}},
    {"random, few columns", {"", "random:n=100000,cols=4096,row_nnz=16", "random:n=1048576,cols=16384,row_nnz=16"}},
    {"narrow band", {"", "banded:n=300000,bandwidth=3", "banded:n=3000000,bandwidth=3"}},
    {"wide band", {"", "banded:n=20000,bandwidth=64", "banded:n=200000,bandwidth=64"}},
    {"half-filled band", {"", "banded:n=100000,bandwidth=32,density=0.5", "banded:n=1000000,bandwidth=32,density=0.5"}},
    {"sparse band", {"", "banded:n=50000,bandwidth=512,density=0.03", "banded:n=500000,bandwidth=512,density=0.03"}},
    {"3 diagonals", {"", "diagonals:n=700000,count=3,spacing=1", "diagonals:n=6000000,count=3,spacing=1"}},
    {"27 diagonals", {"", "diagonals:n=70000,count=27,spacing=40", "diagonals:n=700000,count=27,spacing=400"}},
    {"triangle 16", {"", "random:n=200000,row_nnz=16,triangular", "random:n=2000000,row_nnz=16,triangular"}},
};
static_assert(std::size(kMatrices) == 30);

}  // namespace

std::vector<NamedMatrix> locality_matrices(Size size) {
  const std::span<const MatrixClass> all(kMatrices);
  return matrices_from({}, size == Size::tiny ? all.first(kTiny) : all, size);
}

}  // namespace shardmat::tools
