// How long a training step of BERT takes on a GPU, from tensors in memory to the loss.
//
//   bench_cuda_step [MODEL] [ROWSxLENGTH...] [--device NAME] [--steps N]
//
// MODEL is a builder or a directory [bert-tiny]; batches are full rows of made-up ids. Float32, the
// dropout of the configuration, AdamW with clipping. Prints a line for each batch: the median, the
// least and the largest time of a step, the time until the first is done, and the nodes of the
// captured graph.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "lathe/core/error.h"
#include "lathe/engine/cuda/cuda_executor.h"
#include "lathe/io/model.h"
#include "lathe/train/training_graph.h"

namespace {

using namespace lathe;

Feed make_feed(std::int64_t rows, std::int64_t length, std::int32_t step) {
  std::vector<std::int32_t> ids, offsets{0}, labels, examples;
  for (std::int64_t i = 0; i < rows * length; ++i)
    ids.push_back(static_cast<std::int32_t>(1000 + i * 7919 % 29000));
  for (std::int64_t row = 0; row < rows; ++row) {
    offsets.push_back(static_cast<std::int32_t>((row + 1) * length));
    labels.push_back(static_cast<std::int32_t>(row % 2));
    examples.push_back(static_cast<std::int32_t>(row));
  }
  const auto tensor = [](const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>({static_cast<std::int64_t>(values.size())},
                                      std::span<const std::int32_t>(values));
  };
  return {{"input_ids", tensor(ids)},       {"offsets", tensor(offsets)},
          {"labels", tensor(labels)},       {"examples", tensor(examples)},
          {"random", tensor({1, 0, step})}, {"learning_rate", Tensor::from<float>({}, {1e-5f})}};
}

double since(std::chrono::steady_clock::time_point from) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

int run(int argc, char** argv) {
  std::string name = "bert-tiny", device = "cuda";
  std::vector<std::pair<long long, long long>> batches;
  int steps = 100;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    std::pair<long long, long long> batch;
    if (word == "--device" && i + 1 < argc)
      device = argv[++i];
    else if (word == "--steps" && i + 1 < argc)
      steps = std::max(1, std::atoi(argv[++i]));
    else if (std::sscanf(word.c_str(), "%lldx%lld", &batch.first, &batch.second) == 2)
      batches.push_back(batch);
    else
      name = word;
  }
  if (batches.empty()) batches = {{8, 512}, {32, 512}};
  const io::Model model = io::load_model(name, {.task = "classify", .seed = 1});
  for (const auto& [rows, length] : batches) {
    State state = model.state;
    const auto start = std::chrono::steady_clock::now();
    const train::TrainingGraph training = train::make_training_graph(model, {}, state);
    const std::unique_ptr<engine::Executor> executor =
        engine::make_executor(training.graph, std::move(state), {.device = device});
    std::int32_t step = 0;
    executor->run(make_feed(rows, length, ++step));
    const double first = since(start);
    for (int i = 0; i < 3; ++i) executor->run(make_feed(rows, length, ++step));
    std::vector<double> times;
    Feed feed = make_feed(rows, length, step);
    for (int i = 0; i < steps; ++i) {
      feed["random"].mutable_data<std::int32_t>()[2] = ++step;
      const auto begin = std::chrono::steady_clock::now();
      executor->run(feed);
      times.push_back(since(begin));
    }
    std::sort(times.begin(), times.end());
    const auto* const gpu = dynamic_cast<const engine::CudaExecutor*>(executor.get());
    fmt::print(
        "{} {}x{} on {}: median {:.3f} ms, {:.3f} to {:.3f}; first step {:.2f} s; {} graph nodes; "
        "arena {:.1f} MB\n",
        name, rows, length, device, times[times.size() / 2] * 1e3, times.front() * 1e3,
        times.back() * 1e3, first, gpu == nullptr ? 0 : gpu->num_captured_nodes(),
        static_cast<double>(executor->report().arena_bytes) / 1e6);
  }
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
