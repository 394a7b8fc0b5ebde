#include "lathe/compress/integer/align_biases.h"

#include "lathe/compress/integer/lower_to_integer.h"
#include "lathe/core/error.h"
#include "lathe/core/role.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"

namespace lathe::compress {

int align_biases(const Graph& graph, State& state) {
  if (is_integer(graph)) fail("the model is one of integers already");
  Graph integer = graph;
  State integers = state;
  lower_to_integer(integer, integers);
  int count = 0;
  for (const char* op : {"integer_linear", "integer_conv2d"})
    for (const NodeId node : integer.nodes_of(op)) {
      const Value bias = integer.input(node, 2);
      const std::optional<NodeId> layer = graph.find(integer.name(node));
      if (bias.is_none() || !layer) continue;
      const std::vector<NodeId> users = graph.users(*layer);
      if (users.size() == 1 && graph.is(users[0], "batch_norm")) continue;
      const auto found = state.find(integer.name(bias.node));
      if (found == state.end() || found->second.dtype() != DType::F32) continue;
      const std::vector<double> scales = integer.attribute(node).reals(ops::kScale);
      const std::vector<std::int64_t> steps =
          ops::read_integers(integers.at(integer.name(bias.node)));
      Tensor aligned(DType::F32, found->second.dims());
      const std::span<float> values = aligned.mutable_data<float>();
      for (std::size_t j = 0; j < values.size(); ++j)
        values[j] = static_cast<float>(static_cast<double>(steps[j]) * scales[j % scales.size()]);
      found->second = std::move(aligned);
      ++count;
    }
  return count;
}

}  // namespace lathe::compress
