#include "lathe/hardware/block.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"

namespace lathe::hardware {

std::int64_t BlockCall::parameter(std::string_view name) const {
  const auto given = instance.parameters.find(name);
  if (given != instance.parameters.end()) return given->second;
  for (const Block::Parameter& known : block.parameters)
    if (known.name == name) {
      if (known.default_value) return *known.default_value;
      fail("block {} needs the parameter \"{}\"", block.name, name);
    }
  throw InternalError(fmt::format("block {} to have the parameter {}", block.name, name),
                      std::source_location::current());
}

int BlockCall::small_parameter(std::string_view name) const {
  const std::int64_t value = parameter(name);
  if (value < INT32_MIN || value > INT32_MAX) fail("{} is {}, too large", name, value);
  return static_cast<int>(value);
}

const Values& BlockCall::table(std::string_view name) const {
  static const Values none;
  const auto found = instance.tables.find(name);
  return found == instance.tables.end() ? none : found->second;
}

Requantization BlockCall::requantization() const {
  const int mode = small_parameter("mode");
  const int width = small_parameter("width");
  if (mode < 0 || mode > 2)
    fail("mode {} must be 0 (nearest even), 1 (floor) or 2 (half up)", mode);
  if (width < 2 || width > 64) fail("width {} must be 2 to 64", width);
  const std::int64_t multiplier = parameter("multiplier");
  if (multiplier < 0 || multiplier > INT32_MAX)
    fail("multiplier {} must be 0 to {}", multiplier, INT32_MAX);
  return {.multiplier = multiplier,
          .shift = small_parameter("shift"),
          .rounding = static_cast<IntegerRounding>(mode),
          .is_symmetric = parameter("symmetric") != 0,
          .element = {.width = width,
                      .is_signed = parameter("signed") != 0,
                      .meaning = outputs.empty() ? "" : outputs[0].element.meaning}};
}

const Block& block_named(std::string_view name) {
  return Registry<Block>::instance().at(name, "hardware block");
}

std::vector<Block::Parameter> requantization_parameters() {
  return {{.name = "width", .summary = "bits of an output"},
          {.name = "signed", .default_value = 1, .summary = "1: outputs are two's complement"},
          {.name = "multiplier", .default_value = 1, .summary = "times this, before the shift"},
          {.name = "shift", .default_value = 0, .summary = "bits dropped; negative: added"},
          {.name = "mode", .default_value = 0, .summary = "0 nearest even, 1 floor, 2 half up"},
          {.name = "symmetric", .default_value = 0, .summary = "1: without the lowest output"}};
}

std::vector<Block::Parameter> with_requantization(std::vector<Block::Parameter> parameters) {
  for (Block::Parameter& parameter : requantization_parameters())
    parameters.push_back(std::move(parameter));
  return parameters;
}

void append_requantization(ModuleParameters& parameters, const Requantization& requantization) {
  parameters.integers.insert(parameters.integers.end(),
                             {{"MW", requantization.multiplier_width()},
                              {"MULTIPLIER", requantization.multiplier},
                              {"SHIFT", requantization.shift},
                              {"OW", requantization.element.width},
                              {"OSIGNED", requantization.element.is_signed ? 1 : 0},
                              {"SYMMETRIC", requantization.is_symmetric ? 1 : 0},
                              {"MODE", static_cast<int>(requantization.rounding)}});
}

SequenceTiming beat_by_beat(std::uint32_t takes, int stages) {
  return {
      .period = {{.count = 1, .takes = takes, .gives = true}}, .stages = stages, .merge = stages};
}

}  // namespace lathe::hardware
