// How fast a training step of a convolutional network runs on this machine's cores.
//
//   bench_cnn_training MODEL BATCH [--threads N] [--seconds S | --rounds N] [--warm-up S] [--each]
//   [--steps] [--device D] [--precision P]
//
// MODEL is a directory or a builder's name (resnet20: 28 x 28 images of one channel). The images
// are made up, as bench_convolution's. AdamW with clipping. Prints one JSON line;
// bench/cnn_training_rival.py runs PyTorch beside it.

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "bench/rounds.h"
#include "lathe/core/error.h"
#include "lathe/engine/executor.h"
#include "lathe/models/loss.h"
#include "lathe/train/array_source.h"
#include "lathe/train/training_feed.h"
#include "lathe/train/training_graph.h"

namespace {

using namespace lathe;

void print_steps(engine::Executor& executor, const Feed& feed) {
  executor.set_timing(true);
  constexpr int kTimed = 5;
  for (int i = 0; i < kTimed; ++i) executor.run(feed);
  const engine::PlanReport report = executor.report();
  for (const engine::PlannedStep& step : report.steps) {
    const double gflops =
        static_cast<double>(step.flops.evaluate(report.last_sizes)) * kTimed / step.seconds / 1e9;
    fmt::print(stderr, "{:>3} {:<36} {:<70} {:>9.3f} ms {:>7.1f} GFLOP/s a thread\n", step.stage,
               kernel_text(step), step.name, step.seconds * 1e3 / kTimed, gflops);
  }
}

int run(int argc, char** argv) {
  if (argc < 3)
    fail(
        "usage: bench_cnn_training MODEL BATCH [--threads N] [--seconds S | --rounds N] "
        "[--warm-up S] [--each] [--steps] [--device D] [--precision P]");
  const std::int64_t batch = std::atoll(argv[2]);
  if (batch < 1) fail("{}: expected a number of images, at least 1", argv[2]);
  int threads = 2;
  bool steps = false;
  bench::RoundOptions rounds;
  engine::ExecutionOptions options;
  for (int i = 3; i < argc; ++i) {
    if (rounds.take(argc, argv, i)) continue;
    const std::string word = argv[i];
    if (word == "--steps") steps = true;
    if (word == "--threads" && i + 1 < argc) threads = std::atoi(argv[++i]);
    if (word == "--device" && i + 1 < argc) options.device = argv[++i];
    if (word == "--precision" && i + 1 < argc)
      options.precision = engine::parse_precision(argv[++i]);
  }
  ThreadPool pool(threads);
  options.pool = &pool;
  io::Model model = io::load_model(argv[1], {.num_labels = 10});
  models::attach_loss(model.graph, model.labels);
  const NodeId input = model.graph.at("pixel_values");
  std::vector<std::int64_t> shape = model.graph.types(input)[0].dims({{"B", 1}});
  shape.erase(shape.begin());
  std::vector<float> images(static_cast<std::size_t>(batch * num_elements(shape)));
  for (std::size_t i = 0; i < images.size(); ++i)
    images[i] = static_cast<float>(i * 7919 % 1000) / 500.0f - 1.0f;
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> examples;
  for (std::int64_t i = 0; i < batch; ++i) {
    labels.push_back(static_cast<std::int32_t>(i % 10));
    examples.push_back(i);
  }
  train::ArraySource source("pixel_values", shape, images, labels);

  State state = model.state;
  const auto start = std::chrono::steady_clock::now();
  const train::TrainingGraph training = train::make_training_graph(model, {}, state);
  const std::unique_ptr<engine::Executor> executor =
      engine::make_executor(training.graph, std::move(state), options);
  Feed all = source.training_batch(examples, 0).feed, feed;
  train::set_step_inputs(all, 1e-3, 1, 1, true);
  for (const NodeId id : training.graph.nodes_of("input"))
    feed[training.graph.name(id)] = all.at(training.graph.name(id));
  executor->run(feed);
  const double first =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bench::RoundTimes times = bench::time_rounds(rounds, [&] { executor->run(feed); });
  fmt::print(
      "{{\"batch\": {}, \"threads\": {}, \"rounds\": {}, \"best_seconds\": {:.6g}, "
      "\"median_seconds\": {:.6g}, \"images_per_second\": {:.0f}, "
      "\"plan_and_first_step_seconds\": {:.4f}, \"arena_mb\": {:.1f}}}\n",
      batch, threads, times.seconds.size(), times.best(), times.median(),
      static_cast<double>(batch) / times.best(), first,
      static_cast<double>(executor->report().arena_bytes) / 1e6);
  if (steps) print_steps(*executor, feed);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const lathe::UserError& error) {
    fmt::print(stderr, "bench_cnn_training: {}\n", error.message());
    return 1;
  }
}
