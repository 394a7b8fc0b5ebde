#include "lathe/hardware/passes/insert_forks.h"

#include "lathe/core/error.h"
#include "lathe/hardware/netlist_copy.h"

namespace lathe::hardware {

Netlist insert_forks(const Netlist& netlist) {
  std::vector<std::int64_t> readers(netlist.streams().size());
  for (const Instance& instance : netlist.instances())
    for (const StreamId stream : instance.inputs) ++readers[stream];
  for (const StreamId stream : netlist.outputs()) ++readers[stream];

  NetlistCopy copy(netlist);
  std::vector<std::vector<StreamId>> branches(readers.size());  // not yet given away
  const auto fork = [&](StreamId stream) {
    if (readers[stream] == 0) fail("stream \"{}\" is read by nobody", netlist.stream_name(stream));
    branches[stream] = {copy.copy_of(stream)};
    if (readers[stream] == 1) return;
    branches[stream] = copy.result.add({.name = netlist.stream_name(stream) + "_fork",
                                        .block = "stream_fork",
                                        .parameters = {{"branches", readers[stream]}},
                                        .inputs = {copy.copy_of(stream)}});
  };
  const auto take = [&](StreamId stream) {
    const StreamId branch = branches[stream].front();
    branches[stream].erase(branches[stream].begin());
    return branch;
  };

  for (const StreamId stream : netlist.inputs()) fork(stream);
  for (const std::size_t i : topological_order(netlist)) {
    std::vector<StreamId> inputs;
    for (const StreamId stream : netlist.instances()[i].inputs) inputs.push_back(take(stream));
    copy.add(i, std::move(inputs));
    for (const StreamId stream : netlist.instances()[i].outputs) fork(stream);
  }
  for (const StreamId stream : netlist.outputs()) copy.result.add_output(take(stream));
  return copy.result;
}

StreamId convert_lanes(Netlist& netlist, StreamId stream, int lanes) {
  if (netlist.type(stream).lanes == lanes) return stream;
  std::string name = fmt::format("{}_by_{}", netlist.stream_name(stream), lanes);
  for (const Netlist::NamedStream& other : netlist.streams())
    if (other.name == name) name += "_again";  // two readers of one width share nothing yet
  const StreamId result = netlist.add_single({.name = name,
                                              .block = "width_converter",
                                              .parameters = {{"lanes", lanes}},
                                              .inputs = {stream}});
  netlist.set_meaning(result, netlist.type(stream).element.meaning);
  return result;
}

}  // namespace lathe::hardware
