#include "lathe/ops/rope_turn.h"

#include <cmath>

#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

namespace lathe::ops {

std::vector<AttributeSpec> rope_attributes() {
  return {{.name = "heads",
           .default_value = 1,
           .summary = "number of heads in the last axis",
           .required = true},
          {.name = "theta", .default_value = 10000.0, .summary = "the base of the wavelengths"},
          {.name = "interleaved",
           .default_value = false,
           .summary = "whether pairs are neighbours rather than halves of a head"},
          {.name = "factor", .default_value = 1.0, .summary = "what frequencies are divided by"},
          {.name = "original_positions",
           .default_value = 0,
           .summary = "positions in which turns are counted; 0: every frequency is divided"},
          {.name = "low_turns",
           .default_value = 0.0,
           .summary = "pairs that turn fewer times in them are divided by the whole factor"},
          {.name = "high_turns",
           .default_value = 0.0,
           .summary = "pairs that turn more often in them are left as they are"}};
}

RopeScaling rope_scaling(const AttributeReader& attributes) {
  return {.factor = attributes.real("factor"),
          .low_turns = attributes.real("low_turns"),
          .high_turns = attributes.real("high_turns"),
          .original = static_cast<double>(attributes.integer("original_positions"))};
}

std::vector<double> rope_frequencies(const AttributeReader& attributes, std::int64_t head_size) {
  const double theta = attributes.real("theta");
  const RopeScaling scaling = rope_scaling(attributes);
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < head_size / 2; ++i)
    frequencies.push_back(scaling.apply(
        std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_size))));
  return frequencies;
}

std::vector<Type> infer_rope(std::string_view op, const OpCall& call) {
  require_floating(op, call, 0);
  const Type& x = call.input(0);
  const Type& positions = call.input(1);
  require_rank_at_least(op, "x", x, 1);
  require_integer(op, "positions", positions);
  const std::int64_t heads = call.attributes().integer("heads");
  const std::int64_t width = constant_size(op, x.axis(-1), x);
  if (heads < 1 || width % heads != 0 || width / heads % 2 != 0)
    fail("{}: the last axis of {} does not divide into {} heads of even size", op, to_text(x),
         heads);
  const RopeScaling scaling = rope_scaling(call.attributes());
  if (!(scaling.factor > 0)) fail("{}: factor is {}: expected above 0", op, scaling.factor);
  if (scaling.original < 0 || (scaling.original > 0 && scaling.high_turns <= scaling.low_turns))
    fail("{}: original_positions {} with low_turns {} and high_turns {}: expected the latter above",
         op, scaling.original, scaling.low_turns, scaling.high_turns);
  const Shape tokens(x.shape.begin(), x.shape.end() - 1);
  if (positions.shape != tokens)
    fail("{}: positions {} do not fit {}: expected shape {}", op, to_text(positions), to_text(x),
         to_text(tokens));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

void turn_pairs(const KernelCall& call, double direction) {
  std::vector<double> values = read_elements(call.input(0));
  const std::vector<std::int64_t> positions = read_integers(call.input(1));
  const auto heads = static_cast<std::size_t>(call.attributes.integer("heads"));
  const bool interleaved = call.attributes.flag("interleaved");
  const auto width = static_cast<std::size_t>(call.input(0).dims().back());
  const std::size_t size = width / heads;
  const std::size_t half = size / 2;
  const std::vector<double> frequencies =
      rope_frequencies(call.attributes, static_cast<std::int64_t>(size));
  for (std::size_t token = 0; token < positions.size(); ++token) {
    for (std::size_t head = 0; head < heads; ++head) {
      double* x = values.data() + token * width + head * size;
      for (std::size_t i = 0; i < half; ++i) {
        const double angle = direction * static_cast<double>(positions[token]) * frequencies[i];
        double& a = x[interleaved ? 2 * i : i];
        double& b = x[interleaved ? 2 * i + 1 : i + half];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
    }
  }
  write_elements(call.outputs[0], values);
}

}  // namespace lathe::ops
