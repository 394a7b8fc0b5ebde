#include "lathe/ops/sequence_offsets.h"

#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

namespace lathe::ops {

void require_offsets(const Type& type) {
  if (is_floating(type.dtype) || type.rank() != 1)
    fail("offsets must be integers of shape [S+1], not {}", to_text(type));
  if (type.shape[0] == Size(0))
    fail("offsets must hold at least one number, not {}", to_text(type));
}

Size num_sequences(const Type& offsets) {
  return offsets.shape[0] - Size(1);
}

std::vector<std::int64_t> read_offsets(const Tensor& offsets, std::int64_t num_tokens) {
  std::vector<std::int64_t> result = read_integers(offsets);
  if (result.empty() || result.front() != 0) fail("offsets must begin with 0");
  for (std::size_t s = 1; s < result.size(); ++s)
    if (result[s] < result[s - 1])
      fail("offsets must not fall: offset {} is {} after {}", s, result[s], result[s - 1]);
  if (result.back() != num_tokens)
    fail("offsets must end at the number of tokens: {} is not {}", result.back(), num_tokens);
  return result;
}

}  // namespace lathe::ops
