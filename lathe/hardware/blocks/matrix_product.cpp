#include <fmt/format.h>

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

// The product of two streams, as attention has it. A frame holds one B. With heads, an element of
// the model's width belongs to one of `heads` parts, each multiplied by itself:
//   turned 0: a [rows, heads, k], b [vectors, heads, k], y [rows, heads][vectors] (scores);
//   turned 1: a [rows, heads][vectors], b [vectors, heads, n], y [rows, heads * n] (context).
namespace lathe::hardware::matrix_product {
namespace {

struct Shape {
  bool is_turned = false;
  std::int64_t heads = 1, rows = 0, vectors = 0;
  std::int64_t inner = 0, outputs = 0;  // summed over, and of a head's row
  std::int64_t in_lanes = 1, out_lanes = 1;

  std::int64_t beats() const { return (inner + in_lanes - 1) / in_lanes; }
  std::int64_t tiles() const { return (outputs + out_lanes - 1) / out_lanes; }
  std::int64_t banks() const { return is_turned ? 1 : out_lanes; }
  std::int64_t words() const {
    return (vectors + banks() - 1) / banks() * heads * (is_turned ? tiles() : beats());
  }
  std::int64_t last() const { return inner - (beats() - 1) * in_lanes; }
};

Shape shape_of(const BlockCall& call) {
  const Stream &a = call.inputs[0], &b = call.inputs[1];
  Shape shape;
  shape.is_turned = call.parameter("turned") != 0;
  shape.heads = call.parameter("heads");
  if (shape.heads < 1) fail("heads {} must be at least 1", shape.heads);
  shape.vectors = b.vectors;
  shape.in_lanes = a.lanes;
  if (b.size % shape.heads != 0) fail("{} elements are not {} heads", b.size, shape.heads);
  if (shape.is_turned) {
    shape.out_lanes = b.lanes;
    shape.inner = a.size;
    shape.outputs = b.size / shape.heads;
    if (a.lanes != 1) fail("turned, with {} lanes instead of 1 in a", a.lanes);
    if (a.vectors % shape.heads != 0) fail("{} rows are not {} heads", a.vectors, shape.heads);
    shape.rows = a.vectors / shape.heads;
    if (a.size != b.vectors) fail("multiplies {} by {}", a.text(), b.text());
  } else {
    shape.out_lanes = call.parameter("lanes");
    shape.inner = a.size / shape.heads;
    shape.outputs = b.vectors;
    shape.rows = a.vectors;
    if (shape.out_lanes < 1) fail("lanes {} must be at least 1", shape.out_lanes);
    if (a.size != b.size || a.lanes != b.lanes) fail("multiplies {} by {}", a.text(), b.text());
  }
  const std::int64_t part = shape.is_turned ? shape.outputs : shape.inner;
  if (shape.heads > 1 && part % b.lanes != 0)
    fail("a head of {} elements has partly filled beats of {}", part, b.lanes);
  return shape;
}

Element sum_element(const BlockCall& call, const Shape& shape) {
  const Element &a = call.inputs[0].element, &b = call.inputs[1].element;
  const Wide corners[] = {Wide{a.lowest()} * b.lowest(), Wide{a.lowest()} * b.highest(),
                          Wide{a.highest()} * b.lowest(), Wide{a.highest()} * b.highest()};
  const auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
  return {.width = signed_width(*low * shape.inner, *high * shape.inner)};
}

std::vector<Stream> infer(const BlockCall& call) {
  const Shape shape = shape_of(call);
  const int width = sum_element(call, shape).width;
  if (width > 64) fail("a sum needs {} bits, more than 64", width);
  Stream result{.element = call.requantization().element,
                .lanes = static_cast<int>(shape.out_lanes),
                .size = shape.outputs,
                .vectors = shape.rows * shape.heads};
  // A head that fills its beats stands beside the next in one vector.
  if (shape.is_turned && shape.outputs % shape.out_lanes == 0) {
    result.size *= shape.heads;
    result.vectors = shape.rows;
  }
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Shape shape = shape_of(call);
  const Requantization requantization = call.requantization();
  const auto frame_a = call.inputs[0].num_elements(), frame_b = call.inputs[1].num_elements();
  Values result;
  const std::int64_t frames = static_cast<std::int64_t>(inputs[0].size()) / frame_a;
  for (std::int64_t frame = 0; frame < frames; ++frame)
    for (std::int64_t row = 0; row < shape.rows * shape.heads; ++row)
      for (std::int64_t j = 0; j < shape.outputs; ++j) {
        const std::int64_t head = row % shape.heads;
        std::int64_t sum = 0;
        for (std::int64_t k = 0; k < shape.inner; ++k) {
          const std::int64_t at_b = shape.is_turned ? (k * shape.heads + head) * shape.outputs + j
                                                    : (j * shape.heads + head) * shape.inner + k;
          sum += inputs[0][static_cast<std::size_t>(frame * frame_a + row * shape.inner + k)] *
                 inputs[1][static_cast<std::size_t>(frame * frame_b + at_b)];
        }
        result.push_back(requantization.apply(sum));
      }
  return {result};
}

Timing timing(const BlockCall& call) {
  const Shape shape = shape_of(call);
  SequenceTiming result{
      .period = {},
      .stages = 4,
      .merge = 3,
      .store = {.beats = call.inputs[1].beats(), .periods = shape.rows * shape.heads}};
  for (std::int64_t tile = 0; tile < shape.tiles(); ++tile) {
    const std::uint32_t takes = tile == 0 ? 1 : 0;
    if (shape.beats() > 1)
      result.period.push_back({.count = shape.beats() - 1, .takes = takes, .gives = false});
    result.period.push_back({.count = 1, .takes = takes, .gives = true});
  }
  return result;
}

bool is_block(const BlockCall& call, const Shape& shape) {
  return is_block_memory(call.inputs[1].bits(), 2 * shape.words());
}

Resources block_resources(const BlockCall& call) {
  const Shape shape = shape_of(call);
  const auto bits = [](const Element& e) { return e.width + (e.is_signed ? 0 : 1); };
  Resources result{.dsp = shape.in_lanes * shape.out_lanes *
                          dsp_of_product(bits(call.inputs[0].element), bits(call.inputs[1].element),
                                         sum_element(call, shape).width)};
  result.dsp += shape.out_lanes *
                dsp_of_scaling(sum_element(call, shape).width, call.parameter("multiplier"));
  if (is_block(call, shape))
    result.bram18 = shape.banks() *
                    bram18_of_memory(call.inputs[1].bits(), 2 * shape.words(), MemoryUse::Written);
  return result;
}

ModuleParameters module_parameters(const BlockCall& call) {
  const Shape shape = shape_of(call);
  const Element &a = call.inputs[0].element, &b = call.inputs[1].element;
  ModuleParameters result{.integers = {{"HEADS", shape.heads},
                                       {"ROWS", shape.rows},
                                       {"VECTORS", shape.vectors},
                                       {"BEATS", shape.beats()},
                                       {"TILES", shape.tiles()},
                                       {"PI", shape.in_lanes},
                                       {"LAST", shape.last()},
                                       {"PO", shape.out_lanes},
                                       {"TURNED", shape.is_turned ? 1 : 0},
                                       {"XW", a.width},
                                       {"XSIGNED", a.is_signed ? 1 : 0},
                                       {"WW", b.width},
                                       {"WSIGNED", b.is_signed ? 1 : 0},
                                       {"AW", sum_element(call, shape).width}}};
  append_requantization(result, call.requantization());
  result.integers.push_back({"BLOCK", is_block(call, shape) ? 1 : 0});
  return result;
}

std::string describe(const BlockCall& call) {
  const Shape shape = shape_of(call);
  return fmt::format("y = A {}, {} heads of {} x {} by {}, a {}, b {}, {}-bit sums, {}",
                     shape.is_turned ? "B" : "B'", shape.heads, shape.rows, shape.inner,
                     shape.outputs, call.inputs[0].element.text(), call.inputs[1].element.text(),
                     sum_element(call, shape).width, call.requantization().text());
}

const Register registration{Block{
    .name = "matrix_product",
    .summary = "the product of two streams, one of which is kept for each frame",
    .parameters = with_requantization(
        {{.name = "heads", .default_value = 1, .summary = "parts multiplied by themselves"},
         {.name = "turned", .default_value = 0, .summary = "1: a vector of b is a row of outputs"},
         {.name = "lanes", .default_value = 1, .summary = "outputs at a time, where not turned"}}),
    .parts = {"product_lane", "ram", "requant"},
    .input_ports = {"s0", "s1"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = timing,
    .resources = block_resources,
    .module_parameters = module_parameters,
    .describe = describe,
}};

}  // namespace
}  // namespace lathe::hardware::matrix_product
