#include "lathe/experiment/bench/op_call.h"

#include <cmath>

#include "lathe/core/error.h"
#include "lathe/ops/example.h"

namespace lathe::experiment::bench {

Result time_op_call(const OpCallOptions& options, const engine::ExecutionOptions& execution,
                    const Callbacks& callbacks) {
  const ops::Example example = ops::parse_example(options.call);
  const std::vector<Tensor> inputs =
      ops::random_inputs(example, options.seed + 1, {.low = 0.25, .high = 1.25});
  Feed feed;
  double bytes = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    feed[example.graph.name(example.inputs[i])] = inputs[i];
    bytes += static_cast<double>(inputs[i].num_bytes());
  }
  const auto executor = engine::make_executor(example.graph, {}, execution);
  if (!callbacks.goes_on({"timing", "calls", 0, 1})) throw Interrupted();
  const Feed outputs = executor->run(feed);
  double difference = 0;
  const std::vector<Tensor> expected = ops::evaluate(example, inputs);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Value value{example.node, static_cast<std::int32_t>(i)};
    for (const auto& [name, output] : example.graph.outputs()) {
      if (output != value) continue;
      const Tensor& actual = outputs.at(name);
      bytes += static_cast<double>(actual.num_bytes());
      for (std::int64_t j = 0; j < actual.num_elements(); ++j)
        if (const double off = std::fabs(actual.at(j) - expected[i].at(j)); off > difference)
          difference = off;
    }
  }
  const Op& op = example.graph.op(example.node);
  double flops = 0;
  if (op.flops)
    flops = static_cast<double>(
        op.flops(example.graph.call(example.node)).evaluate(ops::example_symbols()));
  Result result{.bench = "op",
                .title = options.call,
                .device = device_name(execution),
                .limits = {copy_bandwidth(execution, callbacks), 0},
                .rows = {{.name = op.name,
                          .time = time_runs(*executor, feed, options.repeats, callbacks),
                          .bytes = bytes,
                          .flops = flops}}};
  result.notes.push_back(
      fmt::format("largest difference from the op's definition: {:.3g}", difference));
  return result;
}

}  // namespace lathe::experiment::bench
