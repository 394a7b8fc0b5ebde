#include "lathe/engine/cuda/cuda_maps.h"
#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/engine/cuda/cuda_walks.h"

namespace lathe::engine {
namespace {

// Maps of one operand and of two. Those of single numbers, such as the sum of the gradients'
// squares, are collected into one launch.

bool is_single(const Graph& graph, NodeId id) {
  if (graph.types(id)[0].num_elements() != Size(1)) return false;
  for (const Value& value : graph.inputs(id))
    if (graph.type(value).num_elements() != Size(1)) return false;
  return true;
}

class ScalarStep final : public CudaStep {
 public:
  explicit ScalarStep(cuda::ScalarOperation operation) : operation_(operation) {}
  CudaGroup group() const override { return CudaGroup::Scalars; }
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    cuda::ScalarOperation operation = operation_;
    operation.a = call.input(0);
    operation.b = call.input(1);
    operation.y = call.output(0);
    table.scalars.push_back(operation);
  }
  void launch(const CudaCall&) const override {}

 private:
  cuda::ScalarOperation operation_;
};

using MadeStep = std::unique_ptr<CudaStep>;

MadeStep make_map(const Graph& graph, NodeId id) {
  const std::optional<CudaMap> map = find_cuda_map(graph.op(id).name, graph.attribute(id));
  if (!map || graph.types(id)[0].dtype != DType::F32) return nullptr;
  if (is_single(graph, id))
    return std::make_unique<ScalarStep>(cuda::ScalarOperation{
        .kind = cuda::ScalarOperation::Kind::Map, .map = map->map, .value = map->slope});
  return cuda_step([map = *map](const CudaCall& call) {
    call.kernels.map({.map = map.map,
                      .slope = map.slope,
                      .x = call.input(0),
                      .y = call.output(0),
                      .count = call.extent(call.type(0).num_elements())},
                     call.stream);
  });
}

MadeStep make_map_gradient(const Graph& graph, NodeId id) {
  const AttributeReader attributes = graph.attribute(id);
  const std::optional<CudaMap> map = find_cuda_map(attributes.text("function"), attributes);
  if (!map || graph.types(id)[0].dtype != DType::F32) return nullptr;
  return cuda_step([map = *map](const CudaCall& call) {
    call.kernels.map_gradient({.map = map.map,
                               .slope = map.slope,
                               .dy = call.input(0),
                               .x = call.input(1),
                               .dx = call.output(0),
                               .count = call.extent(call.type(0).num_elements())},
                              call.stream);
  });
}

// Operands `first` and `first + 1` broadcast to the result.
cuda::PairArgs pair_args(const CudaCall& call, cuda::Pair pair, std::size_t first) {
  const std::vector<std::int64_t> y = call.dims(call.type(0));
  const CudaWalks walks = join_axes(y, {broadcast_walk(call.dims(call.input_type(first)), y),
                                        broadcast_walk(call.dims(call.input_type(first + 1)), y)});
  cuda::PairArgs args;
  args.pair = pair;
  args.a = call.input(first);
  args.b = call.input(first + 1);
  args.y = call.output(0);
  set_dims(walks.dims, args.rank, args.dims);
  args.a_walk = to_walk(walks.strides[0]);
  args.b_walk = to_walk(walks.strides[1]);
  args.count = call.extent(call.type(0).num_elements());
  return args;
}

MadeStep make_pair(const Graph& graph, NodeId id, cuda::Pair pair) {
  if (graph.types(id)[0].dtype != DType::F32) return nullptr;
  if (is_single(graph, id))
    return std::make_unique<ScalarStep>(
        cuda::ScalarOperation{.kind = cuda::ScalarOperation::Kind::Pair, .pair = pair});
  return cuda_step(
      [pair](const CudaCall& call) { call.kernels.pair(pair_args(call, pair, 0), call.stream); });
}

MadeStep make_pair_gradient(const Graph& graph, NodeId id) {
  if (graph.types(id)[0].dtype != DType::F32) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  const std::string& function = attributes.text("function");
  const cuda::Pair pair = function == "pow"       ? cuda::Pair::Power
                          : function == "maximum" ? cuda::Pair::Maximum
                                                  : cuda::Pair::Minimum;
  return cuda_step([pair, operand = attributes.integer("operand")](const CudaCall& call) {
    call.kernels.pair_gradient({.pair = pair_args(call, pair, 1),
                                .dy = call.input(0),
                                .operand = static_cast<std::int32_t>(operand)},
                               call.stream);
  });
}

MadeStep make_gate(const Graph& graph, NodeId id) {
  if (graph.types(id)[0].dtype != DType::F32) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  return cuda_step(
      [minimum = static_cast<float>(attributes.real("minimum")),
       maximum = static_cast<float>(attributes.real("maximum"))](const CudaCall& call) {
        call.kernels.gate({.dy = call.input(0),
                           .x = call.input(1),
                           .dx = call.output(0),
                           .minimum = minimum,
                           .maximum = maximum,
                           .count = call.extent(call.type(0).num_elements())},
                          call.stream);
      });
}

// A result broadcast along its first axis reads one row again and again, which is real; an operand
// that is itself padded has its rows where the result has them.
CudaKernel pair_kernel(std::string op, cuda::Pair pair) {
  return {std::move(op),
          [pair](const Graph& graph, NodeId id) { return make_pair(graph, id, pair); },
          always_takes_padding};
}

const bool are_maps_registered = [] {
  for (const char* op : {"relu", "gelu", "tanh", "sigmoid", "silu", "quick_gelu", "exp", "erf",
                         "log", "neg", "abs", "sqrt", "reciprocal", "cos", "sin", "leaky_relu"})
    Registry<CudaKernel>::instance().add({op, make_map, always_takes_padding});
  return true;
}();

const Register map_gradient{CudaKernel{"map_gradient", make_map_gradient, always_takes_padding}};
const Register add{pair_kernel("add", cuda::Pair::Add)};
const Register sub{pair_kernel("sub", cuda::Pair::Subtract)};
const Register mul{pair_kernel("mul", cuda::Pair::Multiply)};
const Register div{pair_kernel("div", cuda::Pair::Divide)};
const Register minimum{pair_kernel("minimum", cuda::Pair::Minimum)};
const Register maximum{pair_kernel("maximum", cuda::Pair::Maximum)};
const Register power{pair_kernel("pow", cuda::Pair::Power)};
const Register pair_gradient{
    CudaKernel{"binary_map_gradient", make_pair_gradient, always_takes_padding}};
const Register gate{CudaKernel{"gate_gradient", make_gate, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
