#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/hardware/memory_image.h"
#include "lathe/hardware/requantization.h"
#include "lathe/hardware/resources.h"
#include "lathe/hardware/stream.h"
#include "lathe/hardware/timing.h"

namespace lathe::hardware {

/// The number of a stream in its netlist.
using StreamId = std::size_t;

/// A block in a netlist: what it is called, which record it follows, the integers that make it up
/// and the streams it reads and writes.
struct Instance {
  std::string name;
  std::string block;
  std::map<std::string, std::int64_t, std::less<>> parameters = {};
  std::map<std::string, Values, std::less<>> tables = {};
  std::vector<StreamId> inputs = {}, outputs = {};
  std::string note = {};  ///< a line for people, such as the model's layer it came from
};

struct Block;

/// An instance with the types of its streams: what the functions of a record look at.
struct BlockCall {
  const Block& block;
  const Instance& instance;
  std::vector<Stream> inputs;
  std::vector<Stream> outputs = {};  ///< empty while they are inferred

  /// The parameter of that name, or the record's default.
  std::int64_t parameter(std::string_view name) const;
  int small_parameter(std::string_view name) const;
  /// The table of that name; empty where it was not given.
  const Values& table(std::string_view name) const;
  /// From the parameters multiplier, shift, mode, symmetric, width and signed, and the first
  /// output.
  Requantization requantization() const;
};

/// What a block's Verilog module is given: integers, and memories by the parameter that takes the
/// name of their file.
struct ModuleParameters {
  std::vector<std::pair<std::string, std::int64_t>> integers = {};
  std::vector<std::pair<std::string, MemoryImage>> memories = {};
};

/// A streaming block: a module of rtl/ and its twin in C++. Each is registered by its own file.
struct Block {
  struct Parameter {
    std::string name;
    std::optional<std::int64_t> default_value = {};  ///< none: must be given
    std::string summary = {};
  };
  std::string name;  ///< also of the module and of its file in rtl/
  std::string summary;
  std::vector<Parameter> parameters = {};
  std::vector<std::string> tables = {};
  std::vector<std::string> parts = {};  ///< other modules of rtl/ that it is made of
  /// The prefixes of its stream ports. A fork has one port that holds all its outputs.
  std::vector<std::string> input_ports = {"s"}, output_ports = {"m"};
  bool has_any_outputs = false;
  /// What it gives depends on frames before: frames cannot be computed apart from each other.
  bool has_memory = false;
  /// The module's text, of a block that is not in rtl/.
  std::string source = {};

  /// The types of its outputs; fails where the inputs or parameters cannot be.
  std::function<std::vector<Stream>(const BlockCall&)> infer;
  /// What it computes: the definition that the module is tested against.
  std::function<std::vector<Values>(const BlockCall&, const std::vector<Values>&)> evaluate;
  std::function<Timing(const BlockCall&)> timing;
  std::function<Resources(const BlockCall&)> resources = [](const BlockCall&) {
    return Resources{};
  };
  std::function<ModuleParameters(const BlockCall&)> module_parameters;
  /// What this instance computes in which formats, a line for the emitted text.
  std::function<std::string(const BlockCall&)> describe;
};

/// The record of that name; fails with the nearest.
const Block& block_named(std::string_view name);

/// The parameters of `BlockCall::requantization`, for a record's list.
std::vector<Block::Parameter> requantization_parameters();
/// A list and those of `requantization_parameters`.
std::vector<Block::Parameter> with_requantization(std::vector<Block::Parameter> parameters);
/// MW, MULTIPLIER, SHIFT, OW, OSIGNED, SYMMETRIC and MODE for the module.
void append_requantization(ModuleParameters& parameters, const Requantization& requantization);

/// Takes one beat and gives one in every cycle, after `stages`.
SequenceTiming beat_by_beat(std::uint32_t takes = 1, int stages = 1);

}  // namespace lathe::hardware
