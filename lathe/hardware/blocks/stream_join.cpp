#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

// A vector of the result is, beat by beat, the lanes of the first stream and then those of the
// second: with whole vectors a beat, it is their concatenation.
namespace lathe::hardware::stream_join {
namespace {

std::vector<Stream> infer(const BlockCall& call) {
  const Stream &a = call.inputs[0], &b = call.inputs[1];
  if (a.element.width != b.element.width || a.element.is_signed != b.element.is_signed)
    fail("joins {} with {}", a.element.text(), b.element.text());
  if (a.vectors != b.vectors || a.beats_per_vector() != b.beats_per_vector() ||
      a.size % a.lanes != 0 || b.size % b.lanes != 0)
    fail("joins {} with {}: both need whole beats, and as many", a.text(), b.text());
  return {{.element = a.element,
           .lanes = a.lanes + b.lanes,
           .size = a.size + b.size,
           .vectors = a.vectors}};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  Values result;
  result.reserve(inputs[0].size() + inputs[1].size());
  const auto lanes0 = static_cast<std::size_t>(call.inputs[0].lanes);
  const auto lanes1 = static_cast<std::size_t>(call.inputs[1].lanes);
  for (std::size_t beat = 0; beat * lanes0 < inputs[0].size(); ++beat) {
    for (std::size_t i = 0; i < lanes0; ++i) result.push_back(inputs[0][beat * lanes0 + i]);
    for (std::size_t i = 0; i < lanes1; ++i) result.push_back(inputs[1][beat * lanes1 + i]);
  }
  return {result};
}

const Register registration{Block{
    .name = "stream_join",
    .summary = "makes one wide beat of a beat from each of two streams",
    .input_ports = {"s0", "s1"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = [](const BlockCall&) -> Timing { return beat_by_beat(0b11); },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {.integers = {{"WIDTH0", call.inputs[0].bits()}, {"WIDTH1", call.inputs[1].bits()}}};
    },
    .describe = [](const BlockCall&) -> std::string { return "the first in the low bits"; },
}};

}  // namespace
}  // namespace lathe::hardware::stream_join
