#include "lathe/compress/integer/exact_sums.h"

namespace lathe::compress::linear_rule {
namespace {

void lower(IntegerLowering& lowering, NodeId node) {
  if (std::optional<ExactSums> sums = exact_sums(lowering, node))
    add_exact_sums(lowering, node, "integer_linear", std::move(*sums), -1);
}

const Register registration{IntegerRule{"linear", lower}};

}  // namespace
}  // namespace lathe::compress::linear_rule
