#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

// Reads the beats of a frame in the order of three loops, count0 the slowest; count2 beats make a
// vector of the output. A transposition of rows of whole beats, or with strides of 0 a replay.
namespace lathe::hardware::reorder_buffer {
namespace {

struct Loops {
  std::int64_t count0, count1, count2, stride0, stride1, stride2;
};

Loops loops_of(const BlockCall& call) {
  const Loops loops{.count0 = call.parameter("count0"),
                    .count1 = call.parameter("count1"),
                    .count2 = call.parameter("count2"),
                    .stride0 = call.parameter("stride0"),
                    .stride1 = call.parameter("stride1"),
                    .stride2 = call.parameter("stride2")};
  if (loops.count0 < 1 || loops.count1 < 1 || loops.count2 < 1) fail("counts must be at least 1");
  if (loops.stride0 < 0 || loops.stride1 < 0 || loops.stride2 < 0)
    fail("strides must not be negative");
  return loops;
}

template <typename Visit>
void for_each_beat(const Loops& loops, Visit visit) {
  for (std::int64_t i = 0; i < loops.count0; ++i)
    for (std::int64_t j = 0; j < loops.count1; ++j)
      for (std::int64_t k = 0; k < loops.count2; ++k)
        visit(i * loops.stride0 + j * loops.stride1 + k * loops.stride2);
}

std::vector<Stream> infer(const BlockCall& call) {
  const Loops loops = loops_of(call);
  const Stream& input = call.inputs[0];
  if (input.size % input.lanes != 0) fail("{} has partly filled beats", input.text());
  const std::int64_t last = (loops.count0 - 1) * loops.stride0 +
                            (loops.count1 - 1) * loops.stride1 + (loops.count2 - 1) * loops.stride2;
  if (last >= input.beats()) fail("reads beat {} of {}", last, input.beats());
  return {{.element = input.element,
           .lanes = input.lanes,
           .size = loops.count2 * input.lanes,
           .vectors = loops.count0 * loops.count1}};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const std::int64_t lanes = call.inputs[0].lanes, frame = call.inputs[0].num_elements();
  Values result;
  for (auto at = inputs[0].begin(); at != inputs[0].end(); at += frame)
    for_each_beat(loops_of(call), [&](std::int64_t beat) {
      result.insert(result.end(), at + beat * lanes, at + (beat + 1) * lanes);
    });
  return {result};
}

Timing timing(const BlockCall& call) {
  const std::int64_t in = call.inputs[0].beats(), out = call.outputs[0].beats();
  return BufferTiming{.need = std::vector<std::int64_t>(static_cast<std::size_t>(out), in),
                      .free = std::vector<std::int64_t>(static_cast<std::size_t>(in), -out),
                      .frees_at_once = false,
                      .stages = 1};
}

bool is_block(const BlockCall& call) {
  return is_block_memory(call.inputs[0].bits(), 2 * call.inputs[0].beats());
}

const Register registration{Block{
    .name = "reorder_buffer",
    .summary = "the beats of a frame in another order, or several times",
    .parameters = {{.name = "count0", .default_value = 1, .summary = "of the slowest loop"},
                   {.name = "count1", .default_value = 1, .summary = "of the next"},
                   {.name = "count2", .summary = "of the fastest: beats of an output vector"},
                   {.name = "stride0", .default_value = 0, .summary = "beats"},
                   {.name = "stride1", .default_value = 0, .summary = "beats"},
                   {.name = "stride2", .default_value = 1, .summary = "beats"}},
    .parts = {"ram"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = timing,
    .resources = [](const BlockCall& call) -> Resources {
      if (!is_block(call)) return {};
      return {.bram18 = bram18_of_memory(call.inputs[0].bits(), 2 * call.inputs[0].beats(),
                                         MemoryUse::Written)};
    },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      const Loops loops = loops_of(call);
      return {.integers = {{"WIDTH", call.inputs[0].bits()},
                           {"BEATS", call.inputs[0].beats()},
                           {"COUNT0", loops.count0},
                           {"COUNT1", loops.count1},
                           {"COUNT2", loops.count2},
                           {"STRIDE0", loops.stride0},
                           {"STRIDE1", loops.stride1},
                           {"STRIDE2", loops.stride2},
                           {"BLOCK", is_block(call) ? 1 : 0}}};
    },
    .describe =
        [](const BlockCall& call) {
          const Loops loops = loops_of(call);
          return fmt::format("{} x {} x {} beats at steps of {}, {}, {}, of {} kept twice",
                             loops.count0, loops.count1, loops.count2, loops.stride0, loops.stride1,
                             loops.stride2, call.inputs[0].beats());
        },
}};

}  // namespace
}  // namespace lathe::hardware::reorder_buffer
