#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

// One vector of a frame: what a classifier reads of a sequence. Nothing is kept, so it costs a
// counter and not a memory of the frame.
namespace lathe::hardware::vector_select {
namespace {

std::vector<Stream> infer(const BlockCall& call) {
  const Stream& x = call.inputs[0];
  if (call.parameter("index") < 0 || call.parameter("index") >= x.vectors)
    fail("vector {} of {}", call.parameter("index"), x.vectors);
  Stream result = x;
  result.vectors = 1;
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Stream& x = call.inputs[0];
  Values result;
  for (auto frame = inputs[0].begin(); frame != inputs[0].end(); frame += x.num_elements()) {
    const auto begin = frame + call.parameter("index") * x.size;
    result.insert(result.end(), begin, begin + x.size);
  }
  return {result};
}

Timing timing(const BlockCall& call) {
  const Stream& x = call.inputs[0];
  const std::int64_t before = call.parameter("index") * x.beats_per_vector();
  const std::int64_t behind = x.beats() - before - x.beats_per_vector();
  SequenceTiming result;
  if (before > 0) result.period.push_back({.count = before, .gives = false});
  result.period.push_back({.count = x.beats_per_vector()});
  if (behind > 0) result.period.push_back({.count = behind, .gives = false});
  return result;
}

const Register registration{Block{
    .name = "vector_select",
    .summary = "one of the vectors of a frame",
    .parameters = {{.name = "index", .default_value = 0, .summary = "of the vector"}},
    .infer = infer,
    .evaluate = evaluate,
    .timing = timing,
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {.integers = {{"WIDTH", call.inputs[0].bits()},
                           {"BEATS", call.inputs[0].beats_per_vector()},
                           {"VECTORS", call.inputs[0].vectors},
                           {"INDEX", call.parameter("index")}}};
    },
    .describe =
        [](const BlockCall& call) {
          return fmt::format("vector {} of {}, {}", call.parameter("index"), call.inputs[0].vectors,
                             call.inputs[0].element.text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::vector_select
