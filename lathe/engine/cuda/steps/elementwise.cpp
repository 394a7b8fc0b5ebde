#include "lathe/engine/cuda/cuda_maps.h"
#include "lathe/engine/cuda/cuda_products.h"
#include "lathe/engine/cuda/cuda_row_program.h"
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
  std::vector<CudaInPlace> in_place() const override { return {{0, 0}}; }
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    add_scalar(table, call, operation_);
  }

 private:
  cuda::ScalarOperation operation_;
};

// Pairs of small arrays whose operands are as long or single numbers.
class VectorStep final : public CudaStep {
 public:
  explicit VectorStep(cuda::VectorOperation operation) : operation_(operation) {}
  CudaGroup group() const override { return CudaGroup::Vectors; }
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    cuda::VectorOperation operation = operation_;
    operation.a = call.input(0);
    operation.b = call.input(1);
    operation.y = call.output(0);
    table.vectors.push_back(operation);
  }

 private:
  cuda::VectorOperation operation_;
};

std::optional<cuda::VectorOperation> vector_operation(const Graph& graph, NodeId id,
                                                      cuda::Pair pair) {
  const Type& y = graph.types(id)[0];
  if (y.rank() > 1 || !y.num_elements().is_constant()) return std::nullopt;
  cuda::VectorOperation operation{.pair = pair, .count = y.num_elements().constant()};
  if (operation.count > cuda::kMostVectorElements) return std::nullopt;
  const auto is_single = [&](std::size_t input) {
    return graph.type(graph.input(id, input)).num_elements() == Size(1);
  };
  operation.is_a_single = is_single(0);
  operation.is_b_single = is_single(1);
  return operation;
}

using MadeStep = std::unique_ptr<CudaStep>;
using Kind = cuda::RowInstruction::Kind;

// The rows of a step whose operands from `first` on are all of the result's type.
std::optional<CudaRowFacts> row_facts(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> y = cuda_rows(graph.types(id)[0]);
  if (!y || !fits_row_program(y->width)) return std::nullopt;
  CudaRowFacts facts{y->rows, y->width, {}};
  for (std::size_t i = 0; i < graph.inputs(id).size(); ++i) {
    if (graph.type(graph.input(id, i)) != graph.types(id)[0]) return std::nullopt;
    facts.operands.push_back(i);
  }
  return facts;
}

// A map or the gradient of one: by rows, or beside the product that makes its operand.
class MapStep final : public CudaStep {
 public:
  MapStep(CudaRowFacts facts, CudaMap map, bool is_gradient)
      : facts_(std::move(facts)), map_(map), is_gradient_(is_gradient) {}
  CudaGroup group() const override { return CudaGroup::Rows; }
  const CudaRowFacts* rows() const override { return &facts_; }
  bool can_write_half(std::size_t) const override { return true; }
  CudaFollower follower() const override {
    if (map_.map == cuda::Map::LeakyRelu) return CudaFollower::None;  // has a slope to say
    return is_gradient_ ? CudaFollower::MapGradient : CudaFollower::Map;
  }
  void add_to(CudaRowProgram& program, const CudaCall& call) const override {
    cuda::RowInstruction instruction{
        .kind = is_gradient_ ? Kind::MapGradient : Kind::Map, .map = map_.map, .slope = map_.slope};
    instruction.a = program.operand(call, 0);
    if (is_gradient_) instruction.b = program.operand(call, 1);
    program.add(call, instruction, 0);
  }
  void add_to(CudaProducts& products, const CudaCall& call) const override {
    CudaProducts::Entry& entry = products.maker_of(call.input_slots[0]);
    entry.product.map = map_.map;
    if (is_gradient_) {
      const CudaOperand before = call.operand(1);
      entry.product.before = before.data;
      entry.product.before_as = before.as;
      entry.product.c = call.output(0);
      entry.product.c_half = call.output_half(0);
      entry.c = call.output_slots[0];
    } else {
      entry.product.y = call.output(0);
      entry.product.y_half = call.output_half(0);
    }
  }

 private:
  CudaRowFacts facts_;
  CudaMap map_;
  bool is_gradient_;
};

MadeStep make_map(const Graph& graph, NodeId id) {
  const std::optional<CudaMap> map = find_cuda_map(graph.op(id).name, graph.attribute(id));
  if (!map || graph.types(id)[0].dtype != DType::F32) return nullptr;
  if (is_single(graph, id))
    return std::make_unique<ScalarStep>(cuda::ScalarOperation{
        .kind = cuda::ScalarOperation::Kind::Map, .map = map->map, .value = map->slope});
  if (const std::optional<CudaRowFacts> facts = row_facts(graph, id))
    return std::make_unique<MapStep>(*facts, *map, false);
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
  if (const std::optional<CudaRowFacts> facts = row_facts(graph, id))
    return std::make_unique<MapStep>(*facts, *map, true);
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
  if (const std::optional<cuda::VectorOperation> operation = vector_operation(graph, id, pair))
    return std::make_unique<VectorStep>(*operation);
  if (const std::optional<CudaRowFacts> facts = row_facts(graph, id))
    return cuda_row_step(*facts, [pair](CudaRowProgram& program, const CudaCall& call) {
      const int a = program.operand(call, 0);
      program.add(call, {.kind = Kind::Pair, .a = a, .b = program.operand(call, 1), .pair = pair},
                  0);
    });
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

// Gates of constant size, those of weights and biases, share a launch.
class GateStep final : public CudaStep {
 public:
  GateStep(CudaRows rows, float low, float high) : rows_(std::move(rows)), low_(low), high_(high) {}
  CudaGroup group() const override { return CudaGroup::LearnedSteps; }
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    cuda::LearnedStepArgs args;
    args.dy = call.input(0);
    args.x = call.input(1);
    args.dx = call.output(0);
    args.block = args.columns = rows_.width;
    args.rows = call.extent(rows_.rows);
    args.is_gate = true;
    args.low = low_;
    args.high = high_;
    args.first_block = table.num_blocks;
    table.num_blocks += (args.rows.capacity + cuda::kQuantizeBlock - 1) / cuda::kQuantizeBlock;
    table.learned_steps.push_back(args);
  }

 private:
  CudaRows rows_;
  float low_, high_;
};

MadeStep make_gate(const Graph& graph, NodeId id) {
  if (graph.types(id)[0].dtype != DType::F32) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  const auto minimum = static_cast<float>(attributes.real("minimum"));
  const auto maximum = static_cast<float>(attributes.real("maximum"));
  const std::optional<CudaRows> rows = cuda_rows(graph.types(id)[0]);
  if (rows && rows->rows.is_constant() && graph.type(graph.input(id, 1)) == graph.types(id)[0] &&
      graph.type(graph.input(id, 0)) == graph.types(id)[0])
    return std::make_unique<GateStep>(*rows, minimum, maximum);
  if (const std::optional<CudaRowFacts> facts = row_facts(graph, id))
    return cuda_row_step(*facts, [=](CudaRowProgram& program, const CudaCall& call) {
      const int dy = program.operand(call, 0);
      program.add(call,
                  {.kind = Kind::Gate,
                   .a = dy,
                   .b = program.operand(call, 1),
                   .low = minimum,
                   .high = maximum},
                  0);
    });
  return cuda_step([=](const CudaCall& call) {
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
