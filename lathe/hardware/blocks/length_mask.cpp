#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

// The second input is one length a frame. Scores at or behind it become the lowest number of the
// result, which must be so low that softmax makes nothing of it.
namespace lathe::hardware::length_mask {
namespace {

std::vector<Stream> infer(const BlockCall& call) {
  const Stream &scores = call.inputs[0], &length = call.inputs[1];
  const int width = call.small_parameter("width");
  if (length.vectors != 1 || length.size != 1 || length.lanes != 1 || length.element.is_signed)
    fail("length is {} instead of one that is not negative a frame", length.text());
  if (width <= scores.element.width || width > 64)
    fail("width {} must be {} to 64", width, scores.element.width + 1);
  Stream result = scores;
  result.element = {.width = width, .meaning = scores.element.meaning};
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const auto size = static_cast<std::size_t>(call.inputs[0].size);
  const auto frame = static_cast<std::size_t>(call.inputs[0].num_elements());
  const std::int64_t lowest = Element{.width = call.small_parameter("width")}.lowest();
  Values result = inputs[0];
  for (std::size_t i = 0; i < result.size(); ++i)
    if (static_cast<std::int64_t>(i % size) >= inputs[1][i / frame]) result[i] = lowest;
  return {result};
}

Timing timing(const BlockCall& call) {
  SequenceTiming result = beat_by_beat(0b11);
  if (const std::int64_t beats = call.inputs[0].beats(); beats > 1)
    result.period.push_back({.count = beats - 1, .takes = 0b01, .gives = true});
  return result;
}

const Register registration{Block{
    .name = "length_mask",
    .summary = "rows of scores, the lowest number from the frame's length on",
    .parameters = {{.name = "width", .summary = "bits of an output, which is signed"}},
    .input_ports = {"s0", "s1"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = timing,
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {.integers = {{"LANES", call.inputs[0].lanes},
                           {"BEATS", call.inputs[0].beats_per_vector()},
                           {"VECTORS", call.inputs[0].vectors},
                           {"IW", call.inputs[0].element.width},
                           {"ISIGNED", call.inputs[0].element.is_signed ? 1 : 0},
                           {"LW", call.inputs[1].element.width},
                           {"OW", call.parameter("width")}}};
    },
    .describe =
        [](const BlockCall& call) {
          return fmt::format("y[i] = x[i] below the length, the lowest {} from there on",
                             call.outputs[0].element.text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::length_mask
