// Whether training slows down as it goes on: the time of a step in the first and the last tenth of
// a run, on a model whose attention is saturated and whose embedding rows mostly fall out of use.
//
//   bench_subnormals MODEL_DIR [--steps N] [--rows R] [--length L] [--saturate F] [--threads N]
//
// Queries are multiplied by F (default 64), so that in most rows of attention one key takes nearly
// all the weight; after the first 20 steps only 500 ids are seen, so that the moments of the other
// rows only decay. Numbers that shrink below the smallest normal float are slow on many processors
// (Intel's), which is what a ratio far above 1 would show. Prints one JSON line.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "lathe/core/error.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/train/training_graph.h"

namespace {

using namespace lathe;

struct Options {
  int steps = 2000;
  std::int64_t rows = 8, length = 128;
  float saturate = 64;
  int threads = 2;
};

Options read_options(int argc, char** argv) {
  if (argc < 2)
    fail(
        "usage: bench_subnormals MODEL_DIR [--steps N] [--rows R] [--length L] [--saturate F] "
        "[--threads N]");
  Options options;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    const double value = std::atof(argv[i + 1]);
    if (word == "--steps")
      options.steps = static_cast<int>(value);
    else if (word == "--rows")
      options.rows = static_cast<std::int64_t>(value);
    else if (word == "--length")
      options.length = static_cast<std::int64_t>(value);
    else if (word == "--saturate")
      options.saturate = static_cast<float>(value);
    else if (word == "--threads")
      options.threads = static_cast<int>(value);
    else
      fail("unknown option {}", word);
  }
  if (options.steps < 20) fail("--steps must be 20 or more, not {}", options.steps);
  return options;
}

Feed make_feed(const Options& options, std::int32_t step) {
  const auto tensor = [](std::vector<std::int64_t> dims, const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>(std::move(dims), std::span<const std::int32_t>(values));
  };
  const std::int64_t distinct = step <= 20 ? 29000 : 500;
  std::vector<std::int32_t> ids, offsets{0}, labels, examples;
  for (std::int64_t i = 0; i < options.rows * options.length; ++i)
    ids.push_back(static_cast<std::int32_t>(1000 + (i + step) * 7919 % distinct));
  for (std::int32_t row = 0; row < options.rows; ++row) {
    offsets.push_back(static_cast<std::int32_t>((row + 1) * options.length));
    labels.push_back(row % 2);
    examples.push_back(row);
  }
  Feed feed;
  feed["input_ids"] = tensor({options.rows * options.length}, ids);
  feed["offsets"] = tensor({options.rows + 1}, offsets);
  feed["labels"] = tensor({options.rows}, labels);
  feed["examples"] = tensor({options.rows}, examples);
  feed["random"] = tensor({3}, {1, 0, step});
  feed["learning_rate"] = Tensor::from<float>({}, {1e-5f});
  return feed;
}

// Multiplies what makes the queries of each attention.
void saturate_attention(const Graph& graph, State& state, float factor) {
  for (const NodeId attention : graph.nodes_of("attention")) {
    const NodeId linear = graph.input(attention, 0).node;
    if (!graph.is(linear, "linear")) continue;
    const NodeId weight = graph.input(linear, 1).node;
    for (float& value : state.at(graph.name(weight)).mutable_data<float>()) value *= factor;
  }
}

std::int64_t num_subnormals(const State& state) {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : state) {
    if (tensor.dtype() != DType::F32) continue;
    for (const float value : tensor.data<float>())
      if (std::fpclassify(value) == FP_SUBNORMAL) ++count;
  }
  return count;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

int run(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  const io::Model model = io::load_model(argv[1], {.task = "classify"});
  State state = model.state;
  saturate_attention(model.graph, state, options.saturate);
  const train::TrainingGraph training = train::make_training_graph(model, {}, state);
  ThreadPool pool(options.threads);
  engine::CpuExecutor executor(training.graph, std::move(state), {.pool = &pool});
  std::vector<double> seconds;
  for (std::int32_t step = 1; step <= options.steps; ++step) {
    const Feed feed = make_feed(options, step);
    const auto start = std::chrono::steady_clock::now();
    executor.run(feed);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  const auto tenth = static_cast<std::ptrdiff_t>(seconds.size() / 10);
  const double first = median({seconds.begin(), seconds.begin() + tenth});
  const double last = median({seconds.end() - tenth, seconds.end()});
  fmt::print(
      "{{\"steps\": {}, \"saturate\": {}, \"first_tenth_ms\": {:.3f}, \"last_tenth_ms\": {:.3f}, "
      "\"ratio\": {:.3f}, \"subnormals_in_states\": {}, \"threads\": {}}}\n",
      options.steps, options.saturate, first * 1e3, last * 1e3, last / first,
      num_subnormals(executor.state()), options.threads);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const lathe::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.message());
    return 1;
  }
}
