#include "lathe/hardware/netlist.h"

#include <algorithm>
#include <utility>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/lut_model.h"

namespace lathe::hardware {

void Netlist::require_new_name(const std::string& wanted) const {
  const auto has = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& i) { return i.name == wanted; });
  };
  if (wanted.empty()) fail("netlist \"{}\": a part without a name", name);
  if (has(streams_) || has(instances_)) fail("netlist \"{}\": two parts \"{}\"", name, wanted);
}

void Netlist::define(Block block) {
  const std::string block_name = block.name;
  if (Registry<Block>::instance().find(block_name) != nullptr)
    fail("block \"{}\" has the name of one of the library's", block_name);
  if (!own_blocks_.emplace(block_name, std::move(block)).second)
    fail("block \"{}\" is defined twice", block_name);
}

const Block& Netlist::block(std::string_view block_name) const {
  const auto own = own_blocks_.find(block_name);
  return own == own_blocks_.end() ? block_named(block_name) : own->second;
}

StreamId Netlist::add_input(const std::string& stream_name, const Stream& type) {
  require_new_name(stream_name);
  if (type.lanes < 1 || type.size < 1 || type.vectors < 1 || type.element.width < 1 ||
      type.element.width > 64)
    fail("stream \"{}\": {} has no sense", stream_name, type.text());
  streams_.push_back({.name = stream_name, .type = type});
  inputs_.push_back(streams_.size() - 1);
  return inputs_.back();
}

BlockCall Netlist::call(std::size_t index) const {
  const Instance& instance = instances_.at(index);
  BlockCall result{.block = block(instance.block), .instance = instance, .inputs = {}};
  for (const StreamId stream : instance.inputs) result.inputs.push_back(type(stream));
  for (const StreamId stream : instance.outputs) result.outputs.push_back(type(stream));
  return result;
}

std::vector<StreamId> Netlist::add(Instance instance) {
  require_new_name(instance.name);
  return with_place(instance.name, [&] {
    const Block& record = block(instance.block);
    for (const auto& [parameter, value] : instance.parameters) {
      std::vector<std::string> known;
      for (const Block::Parameter& each : record.parameters) known.push_back(each.name);
      if (std::find(known.begin(), known.end(), parameter) == known.end())
        throw unknown_name("parameter of block " + record.name, parameter, known);
    }
    for (const auto& [table, values] : instance.tables)
      if (std::find(record.tables.begin(), record.tables.end(), table) == record.tables.end())
        throw unknown_name("table of block " + record.name, table, record.tables);
    if (instance.inputs.size() != record.input_ports.size())
      fail("block {} reads {} streams, not {}", record.name, record.input_ports.size(),
           instance.inputs.size());
    instances_.push_back(instance);
    std::vector<Stream> types;
    try {
      types = record.infer(call(instances_.size() - 1));
    } catch (...) {
      instances_.pop_back();
      throw;
    }
    Instance& added = instances_.back();
    for (std::size_t i = 0; i < types.size(); ++i) {
      const std::string stream_name =
          types.size() == 1 ? added.name : fmt::format("{}_{}", added.name, i);
      streams_.push_back({.name = stream_name, .type = types[i]});
      added.outputs.push_back(streams_.size() - 1);
    }
    return added.outputs;
  });
}

StreamId Netlist::add_single(Instance instance) {
  const std::vector<StreamId> outputs = add(std::move(instance));
  check(outputs.size() == 1, "a block with one output");
  return outputs[0];
}

void Netlist::add_output(StreamId stream) {
  check(stream < streams_.size(), "a stream of the netlist");
  outputs_.push_back(stream);
}

void Netlist::set_meaning(StreamId stream, std::string meaning) {
  streams_.at(stream).type.element.meaning = std::move(meaning);
}

void Netlist::set_parameter(std::size_t index, std::string_view parameter, std::int64_t value) {
  instances_.at(index).parameters[std::string(parameter)] = value;
}

void verify(const Netlist& netlist) {
  std::vector<int> readers(netlist.streams().size());
  for (std::size_t i = 0; i < netlist.instances().size(); ++i) {
    const BlockCall call = netlist.call(i);
    for (const StreamId stream : call.instance.inputs) ++readers[stream];
    const std::vector<Stream> types = call.block.infer(call);
    check(types.size() == call.outputs.size(), "an instance to write what its block infers");
    for (std::size_t o = 0; o < types.size(); ++o) {
      const Stream &a = types[o], &b = call.outputs[o];
      if (a.element.width != b.element.width || a.element.is_signed != b.element.is_signed ||
          a.lanes != b.lanes || a.size != b.size || a.vectors != b.vectors)
        fail("{}: writes {} where the stream is {}", call.instance.name, a.text(), b.text());
    }
  }
  for (const StreamId stream : netlist.outputs()) ++readers[stream];
  for (StreamId stream = 0; stream < readers.size(); ++stream)
    if (readers[stream] != 1)
      fail("stream \"{}\" has {} readers, not one", netlist.stream_name(stream), readers[stream]);
  if (netlist.inputs().empty() || netlist.outputs().empty())
    fail("netlist \"{}\" needs an input and an output", netlist.name);
}

std::vector<std::size_t> topological_order(const Netlist& netlist) {
  std::vector<bool> is_written(netlist.streams().size());
  for (const StreamId stream : netlist.inputs()) is_written[stream] = true;
  std::vector<std::size_t> order;
  std::vector<bool> is_placed(netlist.instances().size());
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t i = 0; i < netlist.instances().size(); ++i) {
      const Instance& instance = netlist.instances()[i];
      const bool is_ready = std::all_of(instance.inputs.begin(), instance.inputs.end(),
                                        [&](StreamId stream) { return is_written[stream]; });
      if (is_placed[i] || !is_ready) continue;
      for (const StreamId stream : instance.outputs) is_written[stream] = true;
      is_placed[i] = grew = true;
      order.push_back(i);
    }
  }
  check(order.size() == netlist.instances().size(), "a netlist without cycles");
  return order;
}

std::vector<Values> evaluate(const Netlist& netlist, const std::vector<Values>& inputs) {
  check(inputs.size() == netlist.inputs().size(), "values for each input");
  std::vector<Values> values(netlist.streams().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const StreamId stream = netlist.inputs()[i];
    const Stream& type = netlist.type(stream);
    if (inputs[i].empty() || static_cast<std::int64_t>(inputs[i].size()) % type.num_elements() != 0)
      fail("input \"{}\": {} elements are no whole frames of {}", netlist.stream_name(stream),
           inputs[i].size(), type.num_elements());
    for (const std::int64_t value : inputs[i])
      if (value < type.element.lowest() || value > type.element.highest())
        fail("input \"{}\": {} is no {}", netlist.stream_name(stream), value, type.element.text());
    values[stream] = inputs[i];
  }
  for (const std::size_t index : topological_order(netlist)) {
    const BlockCall call = netlist.call(index);
    std::vector<Values> operands;
    for (const StreamId stream : call.instance.inputs) operands.push_back(values[stream]);
    std::vector<Values> results = call.block.evaluate(call, operands);
    check(results.size() == call.instance.outputs.size(), "a result for each output");
    for (std::size_t o = 0; o < results.size(); ++o)
      values[call.instance.outputs[o]] = std::move(results[o]);
  }
  return values;
}

Resources resources(const Netlist& netlist) {
  const std::vector<int> bits = changing_bits(netlist);
  Resources sum;
  for (std::size_t i = 0; i < netlist.instances().size(); ++i) {
    sum += resources_of(netlist.call(i), bits);
  }
  return sum;
}

}  // namespace lathe::hardware
