#include "partition/generators/hexahedra.h"

#include <utility>

#include "partition/generators/hexahedra_walk.h"

namespace shardmat {
namespace {

template <class Physics>
class HexahedraSource final : public HexahedraGridSource {
 public:
  HexahedraSource(std::string name, const Grid& grid, const Physics& physics, const Jitter& jitter,
                  const Inclusions& inclusions)
      : HexahedraGridSource(std::move(name), grid, Physics::kUnknowns, jitter), physics_(physics), inclusions_(inclusions) {}

 private:
  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const override {
    visit_nodes(physics_, inclusions_, begin, end, [&](const GridPoint& p, const NodeBlocks<Physics>& blocks) {
      write_node<Physics::kUnknowns>(grid(), p, blocks, begin, part);
    });
  }

  Physics physics_;
  Inclusions inclusions_;
};

}  // namespace

template <class Physics>
std::unique_ptr<RowSource> make_hexahedra_source(std::string name, const Grid& grid, const Physics& physics,
                                                 const Jitter& jitter, const Inclusions& inclusions) {
  return std::make_unique<HexahedraSource<Physics>>(std::move(name), grid, physics, jitter, inclusions);
}

template std::unique_ptr<RowSource> make_hexahedra_source(std::string, const Grid&, const Diffusion&, const Jitter&,
                                                          const Inclusions&);
template std::unique_ptr<RowSource> make_hexahedra_source(std::string, const Grid&, const Elasticity&, const Jitter&,
                                                          const Inclusions&);

}  // namespace shardmat
