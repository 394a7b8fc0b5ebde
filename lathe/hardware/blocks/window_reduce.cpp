#include <fmt/format.h>

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

namespace lathe::hardware::window_reduce {
namespace {

enum Operation { kSum, kLargest };

std::int64_t count(const BlockCall& call) {
  return call.parameter("count");
}

int sum_width(const BlockCall& call) {
  const Element& x = call.inputs[0].element;
  const Wide times = call.parameter("op") == kSum ? count(call) : 1;
  return signed_width(x.lowest() * times, x.highest() * times);
}

std::vector<Stream> infer(const BlockCall& call) {
  const std::int64_t op = call.parameter("op");
  if (op != kSum && op != kLargest) fail("op {} must be 0 (sum) or 1 (largest)", op);
  if (count(call) < 1 || call.inputs[0].vectors % count(call) != 0)
    fail("{} vectors are no groups of {}", call.inputs[0].vectors, count(call));
  if (sum_width(call) > 64) fail("a sum needs {} bits, more than 64", sum_width(call));
  Stream result = call.inputs[0];
  result.element = call.requantization().element;
  result.vectors /= count(call);
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Requantization requantization = call.requantization();
  const auto size = static_cast<std::size_t>(call.inputs[0].size);
  const std::size_t window = size * static_cast<std::size_t>(count(call));
  const bool is_sum = call.parameter("op") == kSum;
  Values result;
  for (std::size_t at = 0; at < inputs[0].size(); at += window)
    for (std::size_t i = 0; i < size; ++i) {
      std::int64_t gathered = inputs[0][at + i];
      for (std::size_t j = at + i + size; j < at + window; j += size)
        gathered = is_sum ? gathered + inputs[0][j] : std::max(gathered, inputs[0][j]);
      result.push_back(requantization.apply(gathered));
    }
  return {result};
}

Timing timing(const BlockCall& call) {
  const std::int64_t beats = call.inputs[0].beats_per_vector();
  SequenceTiming result{.period = {}, .stages = 2, .merge = 1};
  if (count(call) > 1)
    result.period.push_back({.count = (count(call) - 1) * beats, .takes = 1, .gives = false});
  result.period.push_back({.count = beats, .takes = 1, .gives = true});
  return result;
}

ModuleParameters module_parameters(const BlockCall& call) {
  const Stream& input = call.inputs[0];
  ModuleParameters result{.integers = {{"LANES", input.lanes},
                                       {"BEATS", input.beats_per_vector()},
                                       {"COUNT", count(call)},
                                       {"IW", input.element.width},
                                       {"ISIGNED", input.element.is_signed ? 1 : 0},
                                       {"OP", call.parameter("op")},
                                       {"AW", sum_width(call)}}};
  append_requantization(result, call.requantization());
  return result;
}

const Register registration{Block{
    .name = "window_reduce",
    .summary = "the sum or the largest of some vectors, element by element: pooling",
    .parameters = with_requantization(
        {{.name = "count", .summary = "vectors that become one"},
         {.name = "op", .default_value = 0, .summary = "0 sum, 1 the largest"}}),
    .parts = {"requant"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = timing,
    .resources = [](const BlockCall& call) -> Resources {
      return {.dsp = call.inputs[0].lanes *
                     dsp_of_scaling(sum_width(call), call.parameter("multiplier"))};
    },
    .module_parameters = module_parameters,
    .describe =
        [](const BlockCall& call) {
          return fmt::format("{} of {} vectors of {} {}, {}",
                             call.parameter("op") == kSum ? "sum" : "largest", count(call),
                             call.inputs[0].size, call.inputs[0].element.text(),
                             call.requantization().text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::window_reduce
