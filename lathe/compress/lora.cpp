#include "lathe/compress/lora.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include "lathe/compress/layers.h"
#include "lathe/compress/masked_lora.h"
#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/compress/rounded_parameter.h"
#include "lathe/core/parameters.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/core/scalar_constant.h"
#include "lathe/core/tensor.h"
#include "lathe/models/initialize.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

constexpr std::string_view kA = ".lora_A.weight";
constexpr std::string_view kB = ".lora_B.weight";
constexpr std::string_view kSum = "/lora";

// Random numbers of one site must not be those of another.
std::int64_t free_site(const Graph& graph) {
  std::int64_t site = 0;
  for (const NodeId id : graph.topological_order())
    if (!graph.op(id).dropout_attribute.empty())
      site = std::max(site, graph.attribute(id).integer("site") + 1);
  return site;
}

// What names have behind the number of their layer, each once; whole names where there is none.
std::vector<std::string> endings_of(const Graph& graph, const std::vector<NodeId>& nodes) {
  static const RE2 kNumber(R"(^.*\.[0-9]+\.)");
  std::vector<std::string> endings;
  for (const NodeId node : nodes) {
    std::string ending = graph.name(node);
    RE2::Replace(&ending, kNumber, "");
    if (std::find(endings.begin(), endings.end(), ending) == endings.end())
      endings.push_back(std::move(ending));
  }
  return endings;
}

std::vector<NodeId> matching_linears(const Graph& graph, const std::vector<std::string>& targets) {
  const std::vector<NodeId> linears = adaptable_linears(graph);
  std::vector<bool> is_chosen(linears.size());
  for (const std::string& text : targets) {
    const RE2 pattern(text, RE2::Quiet);
    if (!pattern.ok()) fail("targets=\"{}\": {}", text, pattern.error());
    bool any = false;
    for (std::size_t i = 0; i < linears.size(); ++i)
      if (RE2::PartialMatch(graph.name(linears[i]), pattern)) is_chosen[i] = any = true;
    if (any) continue;
    if (linears.empty()) fail("targets=\"{}\": the model has no linear", text);
    throw UserError(fmt::format("targets=\"{}\": no linear of the model matches it", text),
                    fmt::format("linears end in {}", fmt::join(endings_of(graph, linears), ", ")));
  }
  std::vector<NodeId> chosen;
  for (std::size_t i = 0; i < linears.size(); ++i)
    if (is_chosen[i]) chosen.push_back(linears[i]);
  return chosen;
}

// The state that a linear without bias multiplies with, which nobody else reads; nullopt where
// there is none.
std::optional<NodeId> own_weight(const Graph& graph, NodeId linear, bool& is_rounded) {
  if (!graph.is(linear, "linear") || find_operand(graph, linear, OperandRole::Bias))
    return std::nullopt;
  const Value read = graph.input(linear, operand_index(graph, linear, OperandRole::Weight));
  const Value weight = before_rounding(graph, read);
  if (!graph.is(weight.node, "state") || !is_read_once(graph, weight.node) ||
      state_role(graph, weight.node) != StateRole::Parameter)
    return std::nullopt;
  is_rounded = is_rounded || read != weight;
  return weight.node;
}

// The node of an operand of a commutative node, and the other one.
std::pair<NodeId, NodeId> operands_of(const Graph& graph, NodeId id, bool is_turned) {
  return {before_rounding(graph, graph.input(id, is_turned ? 1 : 0)).node,
          before_rounding(graph, graph.input(id, is_turned ? 0 : 1)).node};
}

// Follows a path from its sum back to the linear; nothing where a node is not what it should be.
std::optional<LoraPath> trace(const Graph& graph, NodeId sum, NodeId linear, NodeId product) {
  LoraPath path;
  path.sum = sum;
  path.linear = linear;
  path.product = product;
  path.name = graph.name(linear);
  const std::optional<std::size_t> input = find_operand(graph, linear, OperandRole::Input);
  if (!input || !find_operand(graph, linear, OperandRole::Weight) || !graph.is(product, "mul"))
    return std::nullopt;
  std::tie(path.up, path.factor) =
      operands_of(graph, product, graph.is(graph.input(product, 0).node, "constant"));
  if (!graph.is(path.factor, "constant")) return std::nullopt;
  const std::optional<NodeId> b = own_weight(graph, path.up, path.is_rounded);
  if (!b) return std::nullopt;
  path.down = before_rounding(graph, graph.input(path.up, 0)).node;
  const std::optional<NodeId> a = own_weight(graph, path.down, path.is_rounded);
  if (!a) return std::nullopt;
  path.a = *a;
  path.b = *b;
  const Value x = before_rounding(graph, graph.input(linear, *input));
  const Value read = before_rounding(graph, graph.input(path.down, 0));
  if (read != x) {
    path.dropout = read.node;
    if (graph.op(read.node).dropout_attribute.empty() ||
        !graph.op(read.node).is_identity_in_inference ||
        before_rounding(graph, graph.input(read.node, 0)) != x)
      return std::nullopt;
    path.dropout_rate = graph.attribute(read.node).real(graph.op(read.node).dropout_attribute);
  }
  const std::vector<double> factors = graph.attribute(path.factor).reals("values");
  if (factors.size() != 1) return std::nullopt;
  path.scaling = factors[0];
  path.rank = graph.types(path.a)[0].dims({}).at(0);
  return path;
}

// The state of a weight that a path may be fused into; fails where it is none.
NodeId fusible_weight(const Graph& graph, const LoraPath& path) {
  NodeId weight =
      graph.input(path.linear, operand_index(graph, path.linear, OperandRole::Weight)).node;
  // What the mask takes out of the weight it takes out of the path.
  if (const auto masked = masked_operand(graph, weight);
      masked && graph.input(weight, 1 - *masked).node == path.mask)
    weight = graph.input(weight, *masked).node;
  if (path.is_rounded || graph.is(weight, "quantize") || graph.is(weight, "decode"))
    throw UserError(
        fmt::format("linear \"{}\": its weight or its LoRA path is rounded, so the two cannot be "
                    "fused without rounding anew",
                    path.name),
        "train LoRA on the float model and fuse it there, then quantize");
  if (!graph.is(weight, "state"))
    fail("linear \"{}\": its weight is computed by \"{}\", so LoRA cannot be fused into it",
         path.name, graph.name(weight));
  return weight;
}

// W + scaling * B . A, each element summed in double and rounded once.
Tensor fused_weight(const Tensor& weight, const Tensor& a, const Tensor& b, double scaling) {
  Tensor result = weight;
  const std::span<float> w = result.mutable_data<float>();
  const std::span<const float> down = a.data<float>();
  const std::span<const float> up = b.data<float>();
  const auto rank = static_cast<std::size_t>(a.dim(0));
  const auto width = static_cast<std::size_t>(a.dim(1));
  std::vector<double> row(width);
  for (std::size_t i = 0; i < w.size() / width; ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t r = 0; r < rank; ++r) {
      const double factor = up[i * rank + r];
      for (std::size_t k = 0; k < width; ++k) row[k] += factor * down[r * width + k];
    }
    for (std::size_t k = 0; k < width; ++k) {
      float& element = w[i * width + k];
      element = static_cast<float>(element + scaling * row[k]);
    }
  }
  return result;
}

void remove_path(Graph& graph, const LoraPath& path) {
  graph.replace_all_uses({path.sum, 0}, {path.linear, 0});
  // Readers before what they read, in either form; a constant may be shared by several paths.
  const std::array nodes{path.sum,    path.product, path.up,      path.masked, path.product,
                         path.factor, path.down,    path.dropout, path.a,      path.b};
  for (const NodeId id : nodes)
    if (id.index >= 0 && graph.has(id) && graph.uses(id).empty()) graph.erase(id);
}

// A weight with the path's product added, in the weight's own layout.
Tensor with_product(const Graph& graph, const State& state, const LoraPath& path,
                    const Tensor& weight) {
  const std::int64_t axis = ops::simplified_axis(2, ops::weight_axis(graph, path.linear));
  return ops::from_matrix(fused_weight(ops::to_matrix(weight, axis), state.at(graph.name(path.a)),
                                       state.at(graph.name(path.b)), path.scaling),
                          weight.dims(), axis);
}

}  // namespace

std::string lora_a_name(std::string_view name) {
  return fmt::format("{}{}", name, kA);
}
std::string lora_b_name(std::string_view name) {
  return fmt::format("{}{}", name, kB);
}

std::vector<NodeId> adaptable_linears(const Graph& graph) {
  std::set<NodeId> parts;
  for (const LoraPath& path : find_lora(graph)) parts.insert({path.down, path.up});
  std::vector<NodeId> found;
  for (const Layer& layer : find_layers(graph))
    if (ops::result_axis(graph, layer.node) == -1 && !parts.contains(layer.node) &&
        graph.type(graph.input(layer.node, layer.weight)).rank() == 2)
      found.push_back(layer.node);
  return found;
}

std::vector<LoraPath> find_lora(const Graph& graph) {
  std::vector<LoraPath> paths;
  for (const NodeId id : graph.nodes_of("add"))
    for (const bool is_turned : {false, true}) {
      const auto [linear, product] = operands_of(graph, id, is_turned);
      if (std::optional<LoraPath> path = trace(graph, id, linear, product)) {
        paths.push_back(std::move(*path));
        break;
      }
      if (std::optional<LoraPath> path = trace_masked_lora(graph, id, linear, product)) {
        paths.push_back(std::move(*path));
        break;
      }
    }
  return paths;
}

void add_lora_path(Graph& graph, NodeId linear, int rank, double scaling, double dropout) {
  const std::string name = graph.name(linear);
  const Value weight = graph.input(linear, operand_index(graph, linear, OperandRole::Weight));
  const Type type = graph.type(weight);
  if (type.dtype != DType::F32)
    throw UserError(
        fmt::format("linear \"{}\": LoRA needs f32 weights, not {}", name, to_text(type)),
        "an integer model does not train: take the quantized one it was made of");
  NodeId source = before_rounding(graph, weight).node, mask = {};
  if (const auto masked = masked_operand(graph, source)) {
    mask = graph.input(source, 1 - *masked).node;
    source = before_rounding(graph, graph.input(source, *masked)).node;
  }
  if (!graph.is(source, "state") && !graph.is(source, "decode"))
    fail("linear \"{}\": its weight is computed by \"{}\", so LoRA could not be fused into it",
         name, graph.name(source));
  const Parameters parameters(graph);
  for (const NodeId state : parameters.sources(weight))
    for (const Use& use : working_uses(graph, parameters, state))
      if (use.user != linear)
        fail(
            "linear \"{}\": its weight \"{}\" is also read by \"{}\", so LoRA cannot be fused "
            "into it",
            name, graph.name(state), graph.name(use.user));
  const std::int64_t axis = ops::simplified_axis(2, ops::weight_axis(graph, linear));
  const std::vector<std::int64_t> dims = ops::matrix_type("lora", type, axis).dims({});
  // The variance of PEFT's start, which is Kaiming's uniform one with slope sqrt(5).
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(dims[1], 1)));
  const std::int64_t site = dropout > 0 ? free_site(graph) : 0;

  NodeId place = linear;
  const auto insert = [&](NodeSpec spec) {
    place = graph.insert_after(place, std::move(spec));
    return Value{place, 0};
  };
  const Value y{linear, 0};
  Value x = graph.input(linear, operand_index(graph, linear, OperandRole::Input));
  const Value a = insert({.name = lora_a_name(name),
                          .op = "state",
                          .inputs = {},
                          .attributes = {{"init", std::string("uniform")}, {"scale", bound}},
                          .types = {{DType::F32, {Size(rank), Size(dims[1])}}}});
  const Value b = insert({.name = lora_b_name(name),
                          .op = "state",
                          .inputs = {},
                          .attributes = {{"init", std::string("zeros")}},
                          .types = {{DType::F32, {Size(dims[0]), Size(rank)}}}});
  if (dropout > 0)
    x = insert({.name = name + "/lora_dropout",
                .op = "dropout",
                .inputs = {x},
                .attributes = {{"rate", dropout}, {"site", site}}});
  const Value down = insert({.name = name + "/lora_A", .op = "linear", .inputs = {x, a, kNone}});
  const Value up = insert({.name = name + "/lora_B", .op = "linear", .inputs = {down, b, kNone}});
  const Value product = insert({.name = name + "/lora_scale", .op = "mul", .inputs = {up, up}});
  const Value factor = add_scalar_constant(graph, name + "/lora_factor", scaling, product.node);
  graph.set_input(product.node, 1, factor);
  // The sum first reads the product twice, so that it is no reader of y while y's are moved to it.
  const Value sum =
      insert({.name = name + std::string(kSum), .op = "add", .inputs = {product, product}});
  graph.replace_all_uses(y, sum);
  graph.set_input(sum.node, 0, y);
  if (mask.index < 0) return;
  cover_lora_path(graph,
                  {.name = name,
                   .linear = linear,
                   .a = a.node,
                   .b = b.node,
                   .down = down.node,
                   .up = up.node,
                   .factor = factor.node,
                   .product = product.node,
                   .sum = sum.node},
                  mask);
}

int insert_lora(Graph& graph, State& state, const LoraOptions& options, std::uint64_t seed) {
  check_lora_options(options);
  if (!find_lora(graph).empty())
    throw UserError("the model has LoRA paths already",
                    "fuse them into its weights first: lathe lora fuse");
  const std::vector<NodeId> linears = matching_linears(graph, options.targets);
  for (const NodeId linear : linears) {
    const std::string name = graph.name(linear);
    add_lora_path(graph, linear, options.rank, options.alpha / options.rank, options.dropout);
    for (const std::string& added : {lora_a_name(name), lora_b_name(name)})
      state[added] = models::initialize_state(graph, graph.at(added), seed);
  }
  return static_cast<int>(linears.size());
}

int fuse_lora(Graph& graph, State& state) {
  const std::vector<LoraPath> paths = find_lora(graph);
  for (const LoraPath& path : paths) fusible_weight(graph, path);  // all or none
  for (const LoraPath& path : paths) {
    const std::string weight = graph.name(fusible_weight(graph, path));
    const std::string a = graph.name(path.a), b = graph.name(path.b);
    for (const std::string& name : {weight, a, b})
      if (!state.contains(name)) fail("state \"{}\" has no value", name);
    Tensor fused = with_product(graph, state, path, state.at(weight));
    if (path.mask.index >= 0) clear_pruned(fused, state.at(graph.name(path.mask)));
    state[weight] = std::move(fused);
    remove_path(graph, path);
    state.erase(a);
    state.erase(b);
  }
  return static_cast<int>(paths.size());
}

void add_lora_products(const Graph& graph, const State& state, State& values) {
  for (const LoraPath& path : find_lora(graph)) {
    const Value weight =
        graph.input(path.linear, operand_index(graph, path.linear, OperandRole::Weight));
    const NodeId source = weight_state(graph, weight);
    const auto value = source.index < 0 ? values.end() : values.find(graph.name(source));
    if (value != values.end()) value->second = with_product(graph, state, path, value->second);
  }
}

void remove_lora(Graph& graph) {
  for (const LoraPath& path : find_lora(graph)) remove_path(graph, path);
  run_pass("remove-dead-nodes", graph);  // the quantizers of paths
}

}  // namespace lathe::compress
