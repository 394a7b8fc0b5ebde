#include "lathe/hardware/netlist_copy.h"

#include <utility>

namespace lathe::hardware {

NetlistCopy::NetlistCopy(const Netlist& original)
    : result(original.name), original_(original), copies_(original.streams().size()) {
  for (const auto& [name, block] : original.own_blocks()) result.define(block);
  for (const StreamId stream : original.inputs())
    copies_[stream] = result.add_input(original.stream_name(stream), original.type(stream));
}

void NetlistCopy::add(std::size_t index, std::vector<StreamId> inputs) {
  Instance instance = original_.instances().at(index);
  const std::vector<StreamId> outputs = std::exchange(instance.outputs, {});
  instance.inputs = std::move(inputs);
  const std::vector<StreamId> added = result.add(std::move(instance));
  for (std::size_t i = 0; i < added.size(); ++i) {
    copies_[outputs[i]] = added[i];
    result.set_meaning(added[i], original_.type(outputs[i]).element.meaning);
  }
}

}  // namespace lathe::hardware
