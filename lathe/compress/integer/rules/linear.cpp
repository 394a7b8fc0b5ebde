#include <cmath>

#include "lathe/compress/integer/exact_sums.h"
#include "lathe/compress/integer/integer_lowering.h"

namespace lathe::compress::linear_rule {
namespace {

void lower(IntegerLowering& lowering, NodeId node) {
  const std::optional<ExactSums> sums = exact_sums(lowering, node);
  if (!sums) return;
  add_exact_sums(lowering, node, "integer_linear", *sums, -1);
}

const Register registration{IntegerRule{"linear", lower}};

}  // namespace
}  // namespace lathe::compress::linear_rule
