#include "lathe/ops/random_operand.h"

#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

namespace lathe::ops {

void require_random(std::string_view op, const Type& type) {
  require_integer(op, "random", type);
  require_vector(op, "random", type, Size(3));
}

void require_places(std::string_view op, const OpCall& call, std::size_t first, const Type& x) {
  const Shape rows(x.shape.begin(), x.shape.end() - 1);
  const char* const names[] = {"examples", "positions"};
  for (std::size_t i = 0; i < 2; ++i) {
    const Type& type = call.input(first + i);
    require_integer(op, names[i], type);
    if (type.shape != rows)
      fail("{}: {} {} do not fit {}: expected shape {}", op, names[i], to_text(type), to_text(x),
           to_text(rows));
  }
}

void require_dropout(std::string_view op, double rate, std::int64_t site) {
  if (!(rate >= 0 && rate < 1)) fail("{} rate {} must be at least 0 and below 1", op, rate);
  if (site < 0 || site >= 65536) fail("{}: site {} must be 0 to 65535", op, site);
}

DropoutStream read_dropout_stream(const Tensor& random, std::int64_t site) {
  const std::vector<std::int64_t> words = read_integers(random);
  return dropout_stream(words[0], words[1], words[2], site);
}

std::int64_t read_step(const Tensor& random) {
  const std::int64_t step = read_integers(random)[2];
  if (step < 1) fail("step {} in random must count from 1", step);
  return step;
}

}  // namespace lathe::ops
