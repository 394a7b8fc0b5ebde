// How fast a training step of a convolutional network runs on this machine's cores.
//
//   bench_cnn_training MODEL BATCH [--threads N] [--seconds S | --rounds N] [--warm-up S] [--each]
//   [--steps] [--device D] [--precision P] [--plain-convolutions]
//
// MODEL is a directory or a builder's name (resnet20: 28 x 28 images of one channel). The images
// are made up, as bench_convolution's. AdamW with clipping. Prints one JSON line;
// bench/cnn_training_rival.py runs PyTorch beside it.

#include <fmt/core.h>

#include <chrono>
#include <cstdio>

#include "bench/image_arguments.h"
#include "lathe/models/loss.h"
#include "lathe/train/array_source.h"
#include "lathe/train/training_feed.h"
#include "lathe/train/training_graph.h"

namespace {

using namespace lathe;

int run(int argc, char** argv) {
  bench::ImageArguments arguments = bench::read_image_arguments(
      argc, argv, "bench_cnn_training MODEL", "",
      [](engine::ExecutionOptions&, const std::string&) { return false; });
  const std::int64_t batch = arguments.batch;
  ThreadPool pool(arguments.threads);
  arguments.options.pool = &pool;
  io::Model model = io::load_model(arguments.model, {.num_labels = 10});
  models::attach_loss(model.graph, model.labels);
  const NodeId input = model.graph.at("pixel_values");
  std::vector<std::int64_t> shape = model.graph.types(input)[0].dims({{"B", 1}});
  shape.erase(shape.begin());
  std::vector<float> images(static_cast<std::size_t>(batch * num_elements(shape)));
  bench::make_up(images);
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
      engine::make_executor(training.graph, std::move(state), arguments.options);
  Feed all = source.training_batch(examples, 0).feed, feed;
  train::set_step_inputs(all, 1e-3, 1, 1, true);
  for (const NodeId id : training.graph.nodes_of("input"))
    feed[training.graph.name(id)] = all.at(training.graph.name(id));
  executor->run(feed);
  const double first =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bench::RoundTimes times =
      bench::time_rounds(arguments.rounds, [&] { executor->run(feed); });
  fmt::print(
      "{{\"batch\": {}, \"threads\": {}, \"rounds\": {}, \"best_seconds\": {:.6g}, "
      "\"median_seconds\": {:.6g}, \"images_per_second\": {:.0f}, "
      "\"plan_and_first_step_seconds\": {:.4f}, \"arena_mb\": {:.1f}}}\n",
      batch, arguments.threads, times.seconds.size(), times.best(), times.median(),
      static_cast<double>(batch) / times.best(), first,
      static_cast<double>(executor->report().arena_bytes) / 1e6);
  if (arguments.prints_steps) {
    constexpr int kTimed = 5;
    executor->set_timing(true);
    for (int i = 0; i < kTimed; ++i) executor->run(feed);
    bench::print_steps(executor->report(), kTimed);
  }
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
