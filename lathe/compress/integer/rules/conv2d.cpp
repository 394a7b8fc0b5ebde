#include "lathe/compress/integer/exact_sums.h"

namespace lathe::compress::conv2d_rule {
namespace {

void lower(IntegerLowering& lowering, NodeId node) {
  if (std::optional<ExactSums> sums = exact_sums(lowering, node))
    add_exact_sums(lowering, node, "integer_conv2d", std::move(*sums), 1);
}

const Register registration{IntegerRule{"conv2d", lower}};

}  // namespace
}  // namespace lathe::compress::conv2d_rule
