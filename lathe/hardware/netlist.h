#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/hardware/block.h"

namespace lathe::hardware {

/// A design: blocks joined by streams. A value; streams and instances are referred to by number.
///
/// A stream is written once. Until `insert_forks` has run it may be read by several instances.
class Netlist {
 public:
  struct NamedStream {
    std::string name;
    Stream type;
  };

  explicit Netlist(std::string design_name = "top") : name(std::move(design_name)) {}

  std::string name;

  /// Adds a block that only this design has. Its name must be none of the registered ones.
  void define(Block block);
  const std::map<std::string, Block, std::less<>>& own_blocks() const { return own_blocks_; }
  /// The design's own block of that name, or the registered one; fails with the nearest.
  const Block& block(std::string_view block_name) const;

  /// A stream that comes from outside.
  StreamId add_input(const std::string& stream_name, const Stream& type);
  /// Adds a block and the streams it writes, which are named after it. Fails with the instance's
  /// name where the block cannot take these streams or parameters.
  std::vector<StreamId> add(Instance instance);
  /// The same, of a block with one output.
  StreamId add_single(Instance instance);
  /// Lets a stream leave the design.
  void add_output(StreamId stream);

  const std::vector<NamedStream>& streams() const { return streams_; }
  const Stream& type(StreamId stream) const { return streams_.at(stream).type; }
  const std::string& stream_name(StreamId stream) const { return streams_.at(stream).name; }
  const std::vector<Instance>& instances() const { return instances_; }
  const std::vector<StreamId>& inputs() const { return inputs_; }
  const std::vector<StreamId>& outputs() const { return outputs_; }

  /// Says what the elements of a stream mean, in a number format's name.
  void set_meaning(StreamId stream, std::string meaning);
  /// Changes a parameter that the types of its streams do not depend on.
  void set_parameter(std::size_t instance, std::string_view parameter, std::int64_t value);
  /// An instance with the types of its streams; lives no longer than the netlist.
  BlockCall call(std::size_t instance) const;

 private:
  void require_new_name(const std::string& wanted) const;

  std::map<std::string, Block, std::less<>> own_blocks_;
  std::vector<NamedStream> streams_;
  std::vector<Instance> instances_;
  std::vector<StreamId> inputs_, outputs_;
};

/// One reader for every stream, types that agree, nothing that leads nowhere: what emission needs.
/// Fails by name.
void verify(const Netlist& netlist);

/// Instances in the order in which data reaches them.
std::vector<std::size_t> topological_order(const Netlist& netlist);

/// What passes through every stream when these values enter, by stream number. Whole frames.
std::vector<Values> evaluate(const Netlist& netlist, const std::vector<Values>& inputs);

/// The sum over all blocks.
Resources resources(const Netlist& netlist);

}  // namespace lathe::hardware
