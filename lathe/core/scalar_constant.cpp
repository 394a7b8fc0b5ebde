#include "lathe/core/scalar_constant.h"

namespace lathe {

Value add_scalar_constant(Graph& graph, std::string name, double value, NodeId before) {
  NodeSpec spec{.name = std::move(name),
                .op = "constant",
                .inputs = {},
                .attributes = {{"values", std::vector<double>{value}}},
                .types = {{DType::F32, {}}}};
  return {
      before.index < 0 ? graph.add(std::move(spec)) : graph.insert_before(before, std::move(spec)),
      0};
}

}  // namespace lathe
