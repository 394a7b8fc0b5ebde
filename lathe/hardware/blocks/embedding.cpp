#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

// The table is [rows, size].
namespace lathe::hardware::embedding {
namespace {

struct Shape {
  std::int64_t rows, size, lanes;

  std::int64_t beats() const { return (size + lanes - 1) / lanes; }
};

Shape shape_of(const BlockCall& call) {
  const Shape shape{.rows = call.parameter("rows"),
                    .size = call.parameter("size"),
                    .lanes = call.parameter("lanes")};
  if (shape.rows < 1 || shape.size < 1 || shape.lanes < 1)
    fail("rows, size and lanes must be at least 1");
  return shape;
}

Element element(const BlockCall& call) {
  return {.width = call.small_parameter("width"), .is_signed = call.parameter("signed") != 0};
}

std::vector<Stream> infer(const BlockCall& call) {
  const Shape shape = shape_of(call);
  const Stream& tokens = call.inputs[0];
  const Values& table = call.table("table");
  if (tokens.size != 1 || tokens.element.is_signed)
    fail("tokens are {} instead of one that is not negative a vector", tokens.text());
  if (static_cast<std::int64_t>(table.size()) != shape.rows * shape.size)
    fail("table has {} elements, not {}", table.size(), shape.rows * shape.size);
  const Element to = element(call);
  for (const std::int64_t value : table)
    if (value < to.lowest() || value > to.highest())
      fail("table holds {}, which is no {}", value, to.text());
  return {{.element = to,
           .lanes = static_cast<int>(shape.lanes),
           .size = shape.size,
           .vectors = tokens.vectors}};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Shape shape = shape_of(call);
  const Values& table = call.table("table");
  Values result;
  for (const std::int64_t token : inputs[0]) {
    if (token >= shape.rows) fail("{}: token {} of {}", call.instance.name, token, shape.rows);
    const auto row = table.begin() + token * shape.size;
    result.insert(result.end(), row, row + shape.size);
  }
  return {result};
}

Timing timing(const BlockCall& call) {
  SequenceTiming result = beat_by_beat();
  if (const std::int64_t beats = shape_of(call).beats(); beats > 1)
    result.period.push_back({.count = beats - 1, .takes = 0, .gives = true});
  return result;
}

bool is_block(const BlockCall& call, const Shape& shape) {
  return is_block_memory(shape.lanes * element(call).width, shape.rows * shape.beats());
}

ModuleParameters module_parameters(const BlockCall& call) {
  const Shape shape = shape_of(call);
  const Values& table = call.table("table");
  MemoryImage image{.width = element(call).width, .per_word = shape.lanes};
  for (std::int64_t row = 0; row < shape.rows; ++row)
    for (std::int64_t i = 0; i < shape.beats() * shape.lanes; ++i)
      image.elements.push_back(
          i < shape.size ? table[static_cast<std::size_t>(row * shape.size + i)] : 0);
  return {.integers = {{"WIDTH", shape.lanes * image.width},
                       {"BEATS", shape.beats()},
                       {"ROWS", shape.rows},
                       {"IW", call.inputs[0].element.width},
                       {"BLOCK", is_block(call, shape) ? 1 : 0}},
          .memories = {{"TABLE", image}}};
}

const Register registration{Block{
    .name = "embedding",
    .summary = "the row of a table that each token names",
    .parameters = {{.name = "rows", .summary = "of the table"},
                   {.name = "size", .summary = "elements of a row"},
                   {.name = "lanes", .summary = "elements of an output beat"},
                   {.name = "width", .summary = "bits of an element"},
                   {.name = "signed", .default_value = 1, .summary = "1: elements are signed"}},
    .tables = {"table"},
    .parts = {"rom"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = timing,
    .resources = [](const BlockCall& call) -> Resources {
      const Shape shape = shape_of(call);
      if (!is_block(call, shape)) return {};
      return {.bram18 = bram18_of_memory(shape.lanes * element(call).width,
                                         shape.rows * shape.beats(), MemoryUse::ReadOnly)};
    },
    .module_parameters = module_parameters,
    .describe =
        [](const BlockCall& call) {
          const Shape shape = shape_of(call);
          return fmt::format("y[{}] = table[x], {} rows of {}", shape.size, shape.rows,
                             element(call).text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::embedding
