#include "runtime/hdf5_on_ranks.h"

#include "partition/hdf5/describe.h"

namespace shardmat {

void describe_on_all_ranks(const std::optional<Hdf5Input>& input, Communicator& communicator) {
  if (communicator.size() == 1) return;  // opening the file asks the helper
  std::string text;
  communicator.together([&] {
    if (input && communicator.rank() == 0) text = hdf5_description_text(*input);
  });
  text = communicator.broadcast(std::move(text));
  communicator.together([&] {
    if (input) remember_hdf5_description(*input, std::move(text));
  });
}

}  // namespace shardmat
