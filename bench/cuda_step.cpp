// How long a step of BERT takes on a GPU, from tensors in memory to the loss or the logits.
//
//   bench_cuda_step [MODEL] [ROWSxLENGTH...] [--inference] [--precision NAME] [--qat fixed8|w4a4]
//                   [--device NAME] [--steps N]
//
// MODEL is a builder or a directory [bert-tiny]; batches are full rows of made-up ids. A training
// step has the dropout of the configuration, clipping and AdamW; with --qat it rounds all weights,
// biases and inputs of linears to fixed:8,4, or weights and inputs to four bits. Prints a line for
// each batch: the median, the least and the largest time of a step, the time until the first is
// done, the nodes of the captured graph and the loss of the first step.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "lathe/compress/quantize_model.h"
#include "lathe/core/error.h"
#include "lathe/core/pass.h"
#include "lathe/engine/cuda/cuda_executor.h"
#include "lathe/io/model.h"
#include "lathe/train/text_source.h"
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

// Only what the graph asks for: a model that is not trained has no labels.
Feed feed_of(const Graph& graph, std::int64_t rows, std::int64_t length, std::int32_t step) {
  Feed feed;
  for (auto& [name, tensor] : make_feed(rows, length, step))
    if (graph.find(name)) feed.emplace(name, std::move(tensor));
  return feed;
}

void quantize(io::Model& model, const std::string& how) {
  using compress::TensorRole;
  compress::RoleFormats formats{{TensorRole::Weights, "fixed:8,4"},
                                {TensorRole::Bias, "fixed:8,4"},
                                {TensorRole::Inputs, "fixed:8,4"}};
  if (how == "w4a4")
    formats = {{TensorRole::Weights, "int:4,channel"}, {TensorRole::Inputs, "int:4,asymmetric"}};
  compress::QuantizeOptions options;
  options.rules = {{.formats = formats}};
  data::TokenizedDataset texts;
  for (std::int32_t i = 0; i < 64; ++i) texts.ids.push_back(1000 + i * 7919 % 29000);
  texts.offsets.push_back(64);
  texts.labels.push_back(0);
  train::TokenizedTexts source(texts, {});
  ThreadPool pool(2);
  compress::quantize_model(model, options, &source, {.pool = &pool});
}

// The model's graph as sources of packed batches feed it, without its loss.
Graph inference_graph(const io::Model& model) {
  Graph graph = model.graph;
  run_pass("pack-sequences", graph);
  if (graph.find("loss")) graph.remove_output("loss");
  run_pass("remove-dead-nodes", graph);
  return graph;
}

double since(std::chrono::steady_clock::time_point from) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

int run(int argc, char** argv) {
  std::string name = "bert-tiny", device = "cuda", qat;
  engine::Precision precision = engine::Precision::Float32;
  bool is_inference = false;
  std::vector<std::pair<long long, long long>> batches;
  int steps = 100;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    std::pair<long long, long long> batch;
    if (word == "--device" && i + 1 < argc)
      device = argv[++i];
    else if (word == "--steps" && i + 1 < argc)
      steps = std::max(1, std::atoi(argv[++i]));
    else if (word == "--precision" && i + 1 < argc)
      precision = engine::parse_precision(argv[++i]);
    else if (word == "--qat" && i + 1 < argc)
      qat = argv[++i];
    else if (word == "--inference")
      is_inference = true;
    else if (std::sscanf(word.c_str(), "%lldx%lld", &batch.first, &batch.second) == 2)
      batches.push_back(batch);
    else
      name = word;
  }
  if (batches.empty()) batches = {{8, 512}, {32, 512}};
  io::Model model = io::load_model(name, {.task = "classify", .seed = 1});
  if (!qat.empty()) quantize(model, qat);
  for (const auto& [rows, length] : batches) {
    State state = model.state;
    const auto start = std::chrono::steady_clock::now();
    const Graph graph =
        is_inference ? inference_graph(model) : train::make_training_graph(model, {}, state).graph;
    const std::unique_ptr<engine::Executor> executor =
        engine::make_executor(graph, std::move(state), {.device = device, .precision = precision});
    std::int32_t step = 0;
    Feed feed = feed_of(graph, rows, length, ++step);
    const Feed result = executor->run(feed);
    const double first = since(start);
    const auto next = [&] {
      ++step;
      if (const auto random = feed.find("random"); random != feed.end())
        random->second.mutable_data<std::int32_t>()[2] = step;
      executor->start(feed);
    };
    // Each step's result is taken when `behind` later ones have begun, as a training run does it
    // (1), or before the next begins (0).
    const auto time_steps = [&](int behind) {
      for (int i = 0; i < behind + 3; ++i) {
        next();
        if (i >= behind) executor->finish();
      }
      std::vector<double> times;
      for (int i = 0; i < steps; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        next();
        executor->finish();
        times.push_back(since(begin));
      }
      for (int i = 0; i < behind; ++i) executor->finish();
      std::sort(times.begin(), times.end());
      return times;
    };
    const std::vector<double> times = time_steps(0);
    const std::vector<double> queued = time_steps(executor->most_begun() - 1);
    const auto* const gpu = dynamic_cast<const engine::CudaExecutor*>(executor.get());
    fmt::print(
        "{} {} {}x{} {}{} on {}: median {:.3f} ms, {:.3f} to {:.3f}; one behind another {:.3f} ms; "
        "first step {:.2f} s; {} graph "
        "nodes; arena {:.1f} MB; {} {:.6f}\n",
        name, is_inference ? "inference" : "training", rows, length, engine::name(precision),
        qat.empty() ? "" : " " + qat, device, times[times.size() / 2] * 1e3, times.front() * 1e3,
        times.back() * 1e3, queued[queued.size() / 2] * 1e3, first,
        gpu == nullptr ? 0 : gpu->num_captured_nodes(),
        static_cast<double>(executor->report().arena_bytes) / 1e6, result.begin()->first,
        result.begin()->second.at(0));
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
