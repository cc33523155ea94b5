#include "kernels/formats/hyb.h"
#include "kernels/host/parts_host.h"

namespace shardmat {

std::unique_ptr<Plan> make_hyb_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  auto cuts = cut_between_rows(static_cast<const HybStorage&>(*storage).rest);
  return typed_plan<HybStorage>(std::move(storage),
                                [cuts = std::move(cuts)]<class T>(const HybStorage& a, const Operands<T>& v, Stream&) {
                                  multiply_ell_host(a.rows, a.ell, v);
                                  add_coo_host(a.rest, cuts, v);
                                });
}

}  // namespace shardmat
