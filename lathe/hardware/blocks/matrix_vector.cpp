#include <fmt/format.h>

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

// A product takes `groups` vectors of the input, one behind the other: with a sliding window, the
// pixels under it. The table "weight" is [outputs, groups, size], "bias" and "multiplier"
// [outputs].
namespace lathe::hardware::matrix_vector {
namespace {

struct Shape {
  std::int64_t groups, size, outputs, in_lanes, out_lanes;

  std::int64_t inputs() const { return groups * size; }
  std::int64_t beats_per_group() const { return (size + in_lanes - 1) / in_lanes; }
  std::int64_t beats() const { return groups * beats_per_group(); }
  std::int64_t tiles() const { return (outputs + out_lanes - 1) / out_lanes; }
};

Shape shape_of(const BlockCall& call) {
  const Stream& input = call.inputs[0];
  const Shape shape{.groups = call.parameter("groups"),
                    .size = input.size,
                    .outputs = call.parameter("outputs"),
                    .in_lanes = input.lanes,
                    .out_lanes = call.parameter("lanes")};
  if (shape.outputs < 1) fail("outputs {} must be at least 1", shape.outputs);
  if (shape.out_lanes < 1) fail("lanes {} must be at least 1", shape.out_lanes);
  if (shape.groups < 1 || input.vectors % shape.groups != 0)
    fail("{} vectors are no groups of {}", input.vectors, shape.groups);
  return shape;
}

// The bits that hold every sum, from the weights that are there: an input adds most at one end of
// its range. Partial sums may wrap around, the last one comes out right.
int sum_width(const BlockCall& call, const Shape& shape) {
  const Values &weight = call.table("weight"), &bias = call.table("bias");
  const Element& element = call.inputs[0].element;
  Wide low = 0, high = 0;
  for (std::int64_t o = 0; o < shape.outputs; ++o) {
    Wide least = bias.empty() ? 0 : bias[static_cast<std::size_t>(o)], most = least;
    for (std::int64_t i = 0; i < shape.inputs(); ++i) {
      const Wide w = weight[static_cast<std::size_t>(o * shape.inputs() + i)];
      least += std::min(w * element.lowest(), w * element.highest());
      most += std::max(w * element.lowest(), w * element.highest());
    }
    low = std::min(low, least);
    high = std::max(high, most);
  }
  return signed_width(low, high);
}

int weight_width(const BlockCall& call) {
  const Values& weight = call.table("weight");
  const auto [low, high] = std::minmax_element(weight.begin(), weight.end());
  return signed_width(*low, *high);
}

int multiplier_width(const BlockCall& call) {
  const Values& multiplier = call.table("multiplier");
  if (multiplier.empty()) return call.requantization().multiplier_width();
  return signed_width(0, *std::max_element(multiplier.begin(), multiplier.end())) - 1;
}

bool is_block(const BlockCall& call, const Shape& shape) {
  return is_block_memory(shape.in_lanes * shape.out_lanes * weight_width(call),
                         shape.beats() * shape.tiles());
}

// What is replayed for all tiles but the first.
bool is_kept_in_block(const BlockCall& call, const Shape& shape) {
  return shape.tiles() > 1 && is_block_memory(call.inputs[0].bits(), shape.beats());
}

std::vector<Stream> infer(const BlockCall& call) {
  const Shape shape = shape_of(call);
  const auto require_size = [&](const char* name, std::int64_t size, bool is_optional) {
    const auto given = static_cast<std::int64_t>(call.table(name).size());
    if (given != size && !(is_optional && given == 0))
      fail("{} has {} elements, not {}", name, given, size);
  };
  require_size("weight", shape.outputs * shape.inputs(), false);
  require_size("bias", shape.outputs, true);
  require_size("multiplier", shape.outputs, true);
  if (!call.table("multiplier").empty() && call.parameter("multiplier") != 1)
    fail("a multiplier for all and one for each output");
  for (const std::int64_t multiplier : call.table("multiplier"))
    if (multiplier < 0 || multiplier > INT32_MAX)
      fail("multiplier {} must be 0 to {}", multiplier, INT32_MAX);
  const int width = sum_width(call, shape);
  if (width > 64) fail("a sum needs {} bits, more than 64", width);
  return {{.element = call.requantization().element,
           .lanes = static_cast<int>(shape.out_lanes),
           .size = shape.outputs,
           .vectors = call.inputs[0].vectors / shape.groups}};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Shape shape = shape_of(call);
  const Requantization requantization = call.requantization();
  const Values &weight = call.table("weight"), &bias = call.table("bias"),
               &multiplier = call.table("multiplier");
  const auto num_inputs = static_cast<std::size_t>(shape.inputs());
  const auto num_outputs = static_cast<std::size_t>(shape.outputs);
  Values result;
  result.reserve(inputs[0].size() / num_inputs * num_outputs);
  for (std::size_t vector = 0; vector < inputs[0].size(); vector += num_inputs)
    for (std::size_t o = 0; o < num_outputs; ++o) {
      std::int64_t sum = bias.empty() ? 0 : bias[o];
      for (std::size_t i = 0; i < num_inputs; ++i)
        sum += inputs[0][vector + i] * weight[o * num_inputs + i];
      result.push_back(requantization.apply(
          sum, multiplier.empty() ? requantization.multiplier : multiplier[o]));
    }
  return {result};
}

Timing timing(const BlockCall& call) {
  const Shape shape = shape_of(call);
  SequenceTiming result{.period = {}, .stages = 4, .merge = 3};
  for (std::int64_t tile = 0; tile < shape.tiles(); ++tile) {
    const std::uint32_t takes = tile == 0 ? 1 : 0;
    if (shape.beats() > 1)
      result.period.push_back({.count = shape.beats() - 1, .takes = takes, .gives = false});
    result.period.push_back({.count = 1, .takes = takes, .gives = true});
  }
  return result;
}

Resources block_resources(const BlockCall& call) {
  const Shape shape = shape_of(call);
  const Element& x = call.inputs[0].element;
  const int x_bits = x.width + (x.is_signed ? 0 : 1);
  Resources result{.dsp = shape.in_lanes * shape.out_lanes *
                          dsp_of_product(x_bits, weight_width(call), sum_width(call, shape))};
  result.dsp +=
      shape.out_lanes * (call.table("multiplier").empty()
                             ? dsp_of_scaling(sum_width(call, shape), call.parameter("multiplier"))
                             : dsp_of_product(sum_width(call, shape), multiplier_width(call) + 1));
  if (is_block(call, shape))
    result.bram18 += bram18_of_memory(shape.in_lanes * shape.out_lanes * weight_width(call),
                                      shape.beats() * shape.tiles(), MemoryUse::ReadOnly);
  if (is_kept_in_block(call, shape))
    result.bram18 += bram18_of_memory(call.inputs[0].bits(), shape.beats(), MemoryUse::Written);
  return result;
}

// Tile by tile, beat by beat: for each output of the tile, the weights of the beat's inputs.
MemoryImage weight_image(const BlockCall& call, const Shape& shape) {
  const Values& weight = call.table("weight");
  MemoryImage image{.width = weight_width(call), .per_word = shape.in_lanes * shape.out_lanes};
  for (std::int64_t tile = 0; tile < shape.tiles(); ++tile)
    for (std::int64_t group = 0; group < shape.groups; ++group)
      for (std::int64_t beat = 0; beat < shape.beats_per_group(); ++beat)
        for (std::int64_t p = 0; p < shape.out_lanes; ++p)
          for (std::int64_t i = 0; i < shape.in_lanes; ++i) {
            const std::int64_t output = tile * shape.out_lanes + p;
            const std::int64_t input = beat * shape.in_lanes + i;
            const bool is_there = output < shape.outputs && input < shape.size;
            image.elements.push_back(
                !is_there ? 0
                          : weight[static_cast<std::size_t>(
                                (output * shape.groups + group) * shape.size + input)]);
          }
  return image;
}

// One element for each output, with zeros up to a whole tile.
MemoryImage output_image(const Values& values, int width, const Shape& shape) {
  MemoryImage image{.width = width, .per_word = shape.out_lanes, .elements = values};
  image.elements.resize(static_cast<std::size_t>(shape.tiles() * shape.out_lanes));
  return image;
}

ModuleParameters module_parameters(const BlockCall& call) {
  const Shape shape = shape_of(call);
  const Stream& input = call.inputs[0];
  const Values &bias = call.table("bias"), &multiplier = call.table("multiplier");
  const int sum_bits = sum_width(call, shape);
  ModuleParameters result{.integers = {{"BEATS", shape.beats()},
                                       {"TILES", shape.tiles()},
                                       {"PI", shape.in_lanes},
                                       {"PO", shape.out_lanes},
                                       {"XW", input.element.width},
                                       {"XSIGNED", input.element.is_signed ? 1 : 0},
                                       {"WW", weight_width(call)},
                                       {"AW", sum_bits},
                                       {"BIAS", bias.empty() ? 0 : 1}}};
  append_requantization(result, call.requantization());
  if (!multiplier.empty())
    for (auto& [name, value] : result.integers)
      if (name == "MW") value = multiplier_width(call);
  result.integers.push_back({"SCALED", multiplier.empty() ? 0 : 1});
  result.integers.push_back({"BLOCK", is_block(call, shape) ? 1 : 0});
  result.integers.push_back({"KEPT_BLOCK", is_kept_in_block(call, shape) ? 1 : 0});
  result.memories.push_back({"WEIGHTS", weight_image(call, shape)});
  if (!bias.empty()) result.memories.push_back({"BIASES", output_image(bias, sum_bits, shape)});
  if (!multiplier.empty())
    result.memories.push_back({"SCALES", output_image(multiplier, multiplier_width(call), shape)});
  return result;
}

std::string describe(const BlockCall& call) {
  const Shape shape = shape_of(call);
  return fmt::format("y[{}] = W x[{}]{}, x {}, {}-bit weights, {}-bit sums{}, {}", shape.outputs,
                     shape.inputs(), call.table("bias").empty() ? "" : " + b",
                     call.inputs[0].element.text(), weight_width(call), sum_width(call, shape),
                     call.table("multiplier").empty() ? "" : ", scaled output by output",
                     call.requantization().text());
}

const Register registration{Block{
    .name = "matrix_vector",
    .summary = "a constant matrix times vectors, some products a cycle",
    .parameters = with_requantization(
        {{.name = "outputs", .summary = "rows of the matrix"},
         {.name = "lanes", .summary = "outputs computed at a time"},
         {.name = "groups", .default_value = 1, .summary = "input vectors of one product"}}),
    .tables = {"weight", "bias", "multiplier"},
    .parts = {"product_lane", "ram", "requant", "rom"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = timing,
    .resources = block_resources,
    .module_parameters = module_parameters,
    .describe = describe,
}};

}  // namespace
}  // namespace lathe::hardware::matrix_vector
