#include "lathe/ops/example.h"

#include <algorithm>
#include <random>

#include "lathe/core/text_scanner.h"
#include "lathe/ops/run_reference.h"

namespace lathe::ops {
namespace {

constexpr std::int64_t kOffsets[] = {0, 2, 5};
constexpr std::int64_t kRandom[] = {1, 0, 2};

bool is_offsets(const Type& type) {
  return !is_floating(type.dtype) && type.shape == Shape{Size::symbol("S") + Size(1)};
}

// {seed low word, seed high word, step}: what ops that draw random numbers read.
bool is_random(const Type& type) {
  return type.dtype == DType::I32 && type.shape == Shape{Size(3)};
}

Tensor random_tensor(const Type& type, std::mt19937_64& engine, ValueRange range) {
  Tensor values(DType::F64, type.dims(example_symbols()));
  const std::span<double> data = values.mutable_data<double>();
  for (double& value : data) {
    // Not std::uniform_real_distribution, whose numbers differ between standard libraries.
    const double unit = static_cast<double>(engine() >> 11) * 0x1p-53;
    value = is_floating(type.dtype) ? range.low + unit * (range.high - range.low)
                                    : static_cast<double>(unit < 0.5);
  }
  if (is_offsets(type)) std::copy(std::begin(kOffsets), std::end(kOffsets), data.begin());
  if (is_random(type)) std::copy(std::begin(kRandom), std::end(kRandom), data.begin());
  return values.converted(type.dtype);
}

Value add_input(Example& example, const Op& op, std::size_t operand, Type type) {
  if (op.operands.empty()) fail("{} takes no operands", op.name);
  const OperandSpec& spec = op.operands[std::min(operand, op.operands.size() - 1)];
  const NodeId input = example.graph.add({.name = spec.name,
                                          .op = "input",
                                          .inputs = {},
                                          .attributes = {},
                                          .types = {std::move(type)}});
  example.inputs.push_back(input);
  return {input, 0};
}

}  // namespace

SymbolValues example_symbols() {
  return {{"B", 2}, {"L", 3}, {"S", 2}, {"T", 5}};
}

Example parse_example(std::string_view text) {
  return with_place(fmt::format("example \"{}\"", text), [&] {
    Example example;
    TextScanner scanner(text);
    const Op& op = OpRegistry::instance().at(scanner.name(), "op");
    NodeSpec spec{.name = "y", .op = op.name, .inputs = {}};
    scanner.expect("(");
    while (!scanner.take(")")) {
      spec.inputs.push_back(scanner.take("none")
                                ? kNone
                                : add_input(example, op, spec.inputs.size(), scanner.type()));
      if (!scanner.next_is(")")) scanner.expect(",");
    }
    spec.attributes = scanner.attributes();
    if (scanner.take(":")) {
      do spec.types.push_back(scanner.type());
      while (scanner.take(","));
    }
    if (!scanner.at_end()) fail("unexpected \"{}\"", scanner.rest());
    example.node = example.graph.add(std::move(spec));
    const std::size_t results = example.graph.types(example.node).size();
    for (std::size_t i = 0; i < results; ++i)
      example.graph.set_output(fmt::format("y{}", i), {example.node, static_cast<std::int32_t>(i)});
    return example;
  });
}

std::vector<Tensor> random_inputs(const Example& example, std::uint64_t seed, ValueRange range) {
  std::mt19937_64 engine(seed);
  std::vector<Tensor> tensors;
  for (const NodeId input : example.inputs)
    tensors.push_back(random_tensor(example.graph.types(input)[0], engine, range));
  return tensors;
}

std::vector<Tensor> evaluate(const Example& example, const std::vector<Tensor>& inputs) {
  check(inputs.size() == example.inputs.size(), "a tensor for each input of the example");
  std::vector<const Tensor*> operands;
  std::size_t next = 0;
  for (const Value& operand : example.graph.inputs(example.node))
    operands.push_back(operand.is_none() ? nullptr : &inputs[next++]);
  return run_reference(example.graph, example.node, operands, example_symbols());
}

std::vector<Tensor> evaluate(std::string_view text, const std::vector<Tensor>& inputs) {
  const Example example = parse_example(text);
  verify(example.graph);
  return evaluate(example, inputs);
}

}  // namespace lathe::ops
