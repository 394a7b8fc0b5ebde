#include "lathe/ops/last_positions.h"

#include "lathe/ops/elements.h"

namespace lathe::ops {

std::vector<std::int64_t> last_positions(const Tensor& mask) {
  const std::vector<double> marks = read_elements(mask);
  const std::int64_t length = mask.dim(1);
  std::vector<std::int64_t> last(static_cast<std::size_t>(mask.dim(0)), 0);
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (marks[i] != 0)
      last[i / static_cast<std::size_t>(length)] = static_cast<std::int64_t>(i) % length;
  return last;
}

}  // namespace lathe::ops
