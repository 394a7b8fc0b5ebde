#include "lathe/ops/optimizer_operands.h"

#include "lathe/ops/operand_checks.h"

namespace lathe::ops {

std::vector<Type> updated_types(std::string_view op, const OpCall& call, std::size_t num_moments) {
  const Type& param = call.input(0);
  std::vector<Type> results;
  for (std::size_t i = 0; i < 2 + num_moments; ++i) {
    const Type& type = call.input(i);
    require_floating(op, call, i);
    if (type.shape != param.shape)
      fail("{}: {} of a parameter {} has another shape", op, to_text(type), to_text(param));
    if (i != 1) results.push_back({.dtype = type.dtype, .shape = type.shape});
  }
  const char* const names[] = {"learning_rate", "scale"};
  for (std::size_t i = 0; i < 2; ++i) {
    require_floating(op, call, 2 + num_moments + i);
    require_rank(op, names[i], call.input(2 + num_moments + i), 0);
  }
  return results;
}

}  // namespace lathe::ops
