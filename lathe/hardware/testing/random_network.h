#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/hardware_profile.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/integer/lower_to_integer.h"
#include "lathe/core/graph.h"
#include "lathe/core/role.h"
#include "lathe/engine/reference_executor.h"
#include "lathe/hardware/mapping/design.h"
#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/ops/elements.h"

namespace lathe::hardware::testing {

/// True where a table holds one number alone: Yosys sees a constant and removes all that leads to
/// it, so that nothing can be compared with estimates.
inline bool has_constant(const Netlist& netlist) {
  for (const Instance& instance : netlist.instances())
    for (const auto& [name, table] : instance.tables)
      if (name == "table" && std::ranges::all_of(table, [&](auto x) { return x == table[0]; }))
        return true;
  return false;
}

/// Draws a small MLP or CNN as a user would have it, rounds it to formats and makes integers of it:
/// convolutions with groups, strides and padding, pooling, functions, residuals, several outputs.
class RandomNetwork {
 public:
  explicit RandomNetwork(std::uint64_t seed) : random_(seed) {
    build();
    quantize();
    compress::lower_to_integer(graph, state);
  }

  Graph graph;  ///< of integers
  State state;

  /// With lanes that need not divide the sizes.
  Design draw_design() {
    GraphMapper mapper(graph, state, {});
    mapper.run();
    Parallelism parallelism;
    for (const GraphMapper::FoldedLayer& layer : mapper.folded_layers())
      parallelism[graph.name(layer.node)] = {
          .in = static_cast<int>(draw(random_, 1, std::min<std::int64_t>(4, layer.in))),
          .out = static_cast<int>(draw(random_, 1, std::min<std::int64_t>(5, layer.out)))};
    return design_hardware(graph, state, {.name = "random", .parallelism = parallelism});
  }

  /// Examples for the design's inputs, and expects that the design's definition gives what the
  /// graph gives.
  std::vector<Values> draw_examples(const Design& design, std::int64_t count) {
    const DesignPort& port = design.inputs.at(0);
    std::vector<std::int64_t> dims = port.dims;
    dims.insert(dims.begin(), count);
    Tensor x(DType::F32, dims);
    const Element element{.width = port.range.width, .is_signed = port.range.is_signed};
    const Values drawn = draw_values(random_, element, x.num_elements());
    for (std::size_t i = 0; i < drawn.size(); ++i)
      x.mutable_data<float>()[i] =
          static_cast<float>(static_cast<double>(drawn[i]) * port.scale.at(0));
    std::map<std::string, std::vector<std::int64_t>> seen;
    engine::run_reference(graph, state, {{"x", x}}, [&](Value value, const Tensor& tensor) {
      if (!is_floating(tensor.dtype())) seen[graph.name(value)] = ops::read_integers(tensor);
    });
    const auto frames_of = [&](const DesignPort& of) {
      const std::vector<std::int64_t>& all = seen.at(of.node);
      const std::int64_t size = std::ssize(all) / count;
      Values frames;
      for (std::int64_t i = 0; i < count; ++i) {
        const Values frame = to_frame(of, {all.begin() + i * size, all.begin() + (i + 1) * size});
        frames.insert(frames.end(), frame.begin(), frame.end());
      }
      return frames;
    };
    std::vector<Values> inputs;
    for (const DesignPort& each : design.inputs) inputs.push_back(frames_of(each));
    const std::vector<Values> streams = evaluate(design.netlist, inputs);
    for (std::size_t i = 0; i < design.outputs.size(); ++i)
      EXPECT_EQ(streams[design.netlist.outputs()[i]], frames_of(design.outputs[i]))
          << design.outputs[i].name;
    return inputs;
  }

 private:
  std::string name(const char* kind) { return kind + std::to_string(++count_); }
  std::int64_t axis(Value x, int which) const { return graph.type(x).axis(which).constant(); }
  bool is_image(Value x) const { return graph.type(x).rank() == 4; }
  bool chance(std::int64_t of) { return draw(random_, 0, of - 1) == 0; }

  Value add(const std::string& node, const char* op, std::vector<Value> inputs,
            Attributes attributes = {}) {
    return {graph.add({.name = node,
                       .op = op,
                       .inputs = std::move(inputs),
                       .attributes = std::move(attributes)}),
            0};
  }
  Value parameter(const std::string& node, std::vector<std::int64_t> dims) {
    Tensor tensor(DType::F32, dims);
    for (float& value : tensor.mutable_data<float>())
      value = static_cast<float>(draw(random_, -128, 128)) / 64.0f;
    state[node] = tensor;
    Shape shape;
    for (const std::int64_t size : dims) shape.push_back(size);
    return {
        graph.add(
            {.name = node, .op = "state", .inputs = {}, .types = {{DType::F32, std::move(shape)}}}),
        0};
  }
  std::vector<Value> with_parameters(const std::string& node, Value x,
                                     const std::vector<std::int64_t>& dims) {
    std::vector<Value> inputs{x, parameter(node + ".weight", dims)};
    if (chance(2)) inputs.push_back(parameter(node + ".bias", {dims[0]}));
    return inputs;
  }

  void build() {
    const bool has_images = chance(2);
    Shape shape{Size::symbol("B")};
    if (has_images) {
      shape.push_back(draw(random_, 1, 3));
      shape.push_back(draw(random_, 3, 7));
      shape.push_back(draw(random_, 3, 7));
    } else {
      shape.push_back(draw(random_, 1, 14));
    }
    Value x{graph.add({.name = "x", .op = "input", .inputs = {}, .types = {{DType::F32, shape}}}),
            0};
    const std::int64_t layers = draw(random_, 1, 4);
    for (std::int64_t i = 0; i < layers; ++i) {
      x = is_image(x) ? image_layer(x) : row_layer(x);
      if (i + 1 < layers && chance(8)) graph.set_output(name("inner"), x);
    }
    if (is_image(x) && !chance(4)) x = linear(x, draw(random_, 1, 9));
    // What leaves must have been through a layer.
    if (graph.nodes_of("conv2d").empty() && graph.nodes_of("linear").empty())
      x = linear(x, draw(random_, 1, 9));
    graph.set_output("y", x);
  }

  Value image_layer(Value x) {
    switch (draw(random_, 0, 5)) {
      case 0:
        return pooled(x);
      case 1:
        return residual(x);
      case 2:
        return linear(x, draw(random_, 1, 9));
      default:
        return activated(convolved(x, draw(random_, 1, 6)));
    }
  }
  Value row_layer(Value x) {
    return chance(3) ? residual(x) : activated(linear(x, draw(random_, 1, 12)));
  }

  // A layer, or two, and what they read beside them.
  Value residual(Value x) {
    const auto layer = [&](Value from, std::int64_t size) {
      return is_image(x) ? kept_convolved(from, size) : linear(from, size);
    };
    const Value inner = chance(2) ? activated(layer(x, draw(random_, 1, 5))) : x;
    const Value sum = add(name("sum"), "add", {layer(inner, axis(x, 1)), x});
    return chance(2) ? activated(sum) : sum;
  }

  Value activated(Value x) {
    static constexpr const char* kFunctions[] = {"relu", "relu", "relu", "tanh", "sigmoid"};
    return chance(5) ? x : add(name("act"), kFunctions[draw(random_, 0, 4)], {x});
  }

  Value linear(Value x, std::int64_t outputs) {
    if (is_image(x)) {
      const std::int64_t size = axis(x, 1) * axis(x, 2) * axis(x, 3);
      x = {graph.add({.name = name("flat"),
                      .op = "reshape",
                      .inputs = {x},
                      .types = {{DType::F32, {Size::symbol("B"), size}}}}),
           0};
    }
    const std::string node = name("linear");
    return add(node, "linear", with_parameters(node, x, {outputs, axis(x, 1)}));
  }

  Value convolved(Value x, std::int64_t outputs) {
    const std::int64_t channels = axis(x, 1);
    const std::int64_t rows = draw(random_, 1, std::min<std::int64_t>(3, axis(x, 2))),
                       columns = draw(random_, 1, std::min<std::int64_t>(3, axis(x, 3)));
    const bool is_grouped = channels > 1 && outputs % channels == 0 && chance(2);
    std::vector<std::int64_t> pads;
    for (const std::int64_t kernel : {rows, columns, rows, columns})
      pads.push_back(draw(random_, 0, kernel - 1));
    const std::string node = name("conv");
    return add(node, "conv2d",
               with_parameters(node, x, {outputs, is_grouped ? 1 : channels, rows, columns}),
               {{"pads", pads},
                {"strides", std::vector<std::int64_t>{draw(random_, 1, 2), draw(random_, 1, 2)}},
                {"groups", is_grouped ? channels : 1}});
  }
  Value kept_convolved(Value x, std::int64_t outputs) {
    const std::int64_t kernel = axis(x, 2) < 3 || axis(x, 3) < 3 ? 1 : draw(random_, 0, 1) * 2 + 1;
    const std::string node = name("conv");
    return add(node, "conv2d", with_parameters(node, x, {outputs, axis(x, 1), kernel, kernel}),
               {{"pads", std::vector<std::int64_t>(4, kernel / 2)}});
  }
  Value pooled(Value x) {
    const std::int64_t kernel =
        draw(random_, 1, std::min<std::int64_t>({3, axis(x, 2), axis(x, 3)}));
    const bool is_largest = chance(2);
    Attributes attributes{{"kernel", std::vector<std::int64_t>{kernel, kernel}}};
    if (is_largest) attributes["pads"] = std::vector<std::int64_t>(4, draw(random_, 0, kernel - 1));
    if (chance(2)) attributes["strides"] = std::vector<std::int64_t>{1, 2};
    return add(name("pool"), is_largest ? "max_pool2d" : "avg_pool2d", {x}, std::move(attributes));
  }

  void quantize() {
    const auto width = [&](std::int64_t low, std::int64_t high) {
      return std::to_string(draw(random_, low, high));
    };
    const bool is_fixed = chance(2);
    const auto activation = [&](const std::string& bits) {
      return is_fixed ? "fixed:" + bits + ",auto" : "int:" + bits;
    };
    std::vector<std::string> weights = {"fixed:" + width(2, 8) + ",auto",
                                        "int:" + width(2, 8) + ",channel",
                                        "ternary",
                                        "binary",
                                        "log:4",
                                        "minifloat:5,2"};
    const compress::HardwareFormats formats{
        .weights = weights[static_cast<std::size_t>(
            chance(3) ? draw(random_, 2, std::ssize(weights) - 1) : draw(random_, 0, 1))],
        .activations = activation(width(3, 8)),
        .residuals = activation(width(6, 12))};
    compress::insert_quantizers(graph, state, compress::hardware_rules(graph, formats));
    compress::set_parameter_scales(graph, state, {});
    for (const compress::Quantizer& quantizer : compress::find_quantizers(graph)) {
      if (quantizer.is_parameter || graph.inputs(quantizer.node).size() < 2) continue;
      const Value scale = graph.input(quantizer.node, 1);
      if (scale.is_none()) continue;
      for (float& value : state.at(graph.name(scale.node)).mutable_data<float>())
        value = static_cast<float>(draw(random_, 10, 60)) / 256.0f;
    }
  }

  Random random_;
  int count_ = 0;
};

}  // namespace lathe::hardware::testing
