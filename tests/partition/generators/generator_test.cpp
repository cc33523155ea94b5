#include "partition/generators/generator.h"

#include "tests/partition/generators/matrix_checks.h"

namespace shardmat {
namespace {

std::string usage_error(const std::string& specification) {
  return message_of(ErrorKind::usage, [&] { make_generator(specification); });
}

TEST(Generator, DefaultsMakeEveryMatrixThatNeedsNoArgument) {
  for (const Generator& generator : generators()) {
    const auto source = make_generator(generator.name);
    EXPECT_EQ(source->name(), generator.name);
    EXPECT_GT(source->rows(), 0);
    for (const GeneratorParameter& parameter : generator.parameters) EXPECT_FALSE(parameter.help.empty());
  }
}

TEST(Generator, NameTellsWhatIsNotDefault) {
  EXPECT_EQ(make_generator("elasticity:uniform,n=7,seed=1")->name(), "elasticity:n=7,uniform=on");
  EXPECT_EQ(make_generator(make_generator("rmat:seed=9,scale=5")->name())->name(), "rmat:scale=5,seed=9");
}

TEST(Generator, KnowsASpecificationFromAPath) {
  for (const char* text : {"elasticity", "elasticity:n=4", "elastisity:n=4", "rmat:"})
    EXPECT_TRUE(is_generator_specification(text)) << text;
  for (const char* text : {"bar.h5", "elastisity", "./rmat:x", "dir/a:b", ":n=3", ""})
    EXPECT_FALSE(is_generator_specification(text)) << text;
}

TEST(Generator, SuggestsTheNearestSpelling) {
  expect_contains(usage_error("elastisity:n=4"), "did you mean elasticity?");
  expect_contains(usage_error("zzzzzzzzz"), "known: poisson27, poisson7, poisson, elasticity");
  expect_contains(usage_error("rmat:scal=4"), "did you mean scale?");
  expect_contains(usage_error("rmat:completely_wrong=4"), "known: scale, edge_factor");
}

TEST(Generator, RefusesBadArguments) {
  expect_contains(usage_error("poisson:n=1"), "poisson: n must be a whole number from 2 to 1048576, not \"1\"");
  expect_contains(usage_error("poisson:n=4x"), "not \"4x\"");
  expect_contains(usage_error("poisson:n="), "not \"\"");
  expect_contains(usage_error("poisson:n"), "n needs a value, as in n=");
  expect_contains(usage_error("poisson:n=3,n=4"), "n is given twice");
  expect_contains(usage_error("poisson:n=3,,seed=1"), "not of the form key=value");
  expect_contains(usage_error("poisson:=3"), "not of the form key=value");
  expect_contains(usage_error("poisson:uniform=maybe"), "uniform must be on or off, not \"maybe\"");
  expect_contains(usage_error("poisson:seed=-1"), "seed must be");
  expect_contains(usage_error("poisson:clamp=nan"), "clamp must be a number from 0 to 1");
  expect_contains(usage_error("poisson:n=1048576"), "nodes are too many");
  expect_contains(usage_error("elasticity:nu=0.5"), "nu must be a number from 0 to 0.4999, not \"0.5\"");
  for (const char* wrong : {"0", "1x2", "1x2x3x4", "1x", "x1x1", "1x0x1", "1e7", "a", "1x1xnan"})
    expect_contains(
        usage_error(std::string("poisson7:stretch=") + wrong),
        std::string("stretch must be a number F or three numbers AxBxC, each from 1e-06 to 1000000, not \"") + wrong + "\"");
  for (const char* other : {"nx=4", "nz=7", "stretch=2"})
    expect_contains(
        usage_error(std::string("elasticity:size=1x1x5,") + other),
        "elasticity: size and " + std::string(other).substr(0, std::string(other).find('=')) + " contradict each other");
  expect_contains(usage_error("poisson:size=1x2"), "size must be a number F or three numbers AxBxC, each from 1e-06");
  expect_contains(usage_error("poisson7:size=1x1x2,n=1"), "n must be a whole number from 2 to 1048576, not \"1\"");
  expect_contains(usage_error("poisson:size=1x1x1e5"),
                  "size=1x1x1e5 with 40 nodes along the shortest edge needs 3.9e+06 along z");
  expect_contains(usage_error("poisson:size=1,n=1000000"), "nodes are too many");
  expect_contains(usage_error("elasticity:mesh=a.h5,size=5"), "size is for grids; leave it out with mesh=FILE");
  expect_contains(usage_error("elasticity:inclusions=0"),
                  "inclusions must be a number from 1e-12 to 1000000000000, not \"0\"");
  expect_contains(usage_error("elasticity:mesh=a.h5,inclusions=5"), "inclusions is for grids; leave it out with mesh=FILE");
  expect_contains(usage_error("elasticity:degree=2"), "degree is for meshes; give mesh=FILE too");
  expect_contains(usage_error("elasticity:mesh=a.h5,n=5"), "n is for grids; leave it out with mesh=FILE");
  expect_contains(usage_error("rmat:a=0.9"), "is more than 1");
  expect_contains(usage_error("random:cols=3"), "row_nnz = 16 is more than the 3 columns");
}

TEST(Generator, RefusesRowsOutsideTheMatrix) {
  const auto source = make_generator("banded:n=10");
  expect_contains(message_of(ErrorKind::internal, [&] { source->read_rows(0, 11); }), "rows [0, 11)");
  expect_contains(message_of(ErrorKind::internal, [&] { source->row_lengths(3, 2); }), "rows [3, 2)");
}

}  // namespace
}  // namespace shardmat
