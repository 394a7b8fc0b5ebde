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
           .summary = "whether pairs are neighbours rather than halves of a head"}};
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
  const double theta = call.attributes.real("theta");
  const auto width = static_cast<std::size_t>(call.input(0).dims().back());
  const std::size_t size = width / heads;
  const std::size_t half = size / 2;
  for (std::size_t token = 0; token < positions.size(); ++token) {
    for (std::size_t head = 0; head < heads; ++head) {
      double* x = values.data() + token * width + head * size;
      for (std::size_t i = 0; i < half; ++i) {
        const double frequency =
            std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(size));
        const double angle = direction * static_cast<double>(positions[token]) * frequency;
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
