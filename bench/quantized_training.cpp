// What rounding costs a training step of BERT-tiny: the step of quantization-aware training beside
// the float step, in one run.
//
//   bench_quantized_training [--threads N] [--rounds N]
//
// Batches are reviews-like: 8,192 tokens in sequences of 40 to 512. All contenders take turns round
// after round, so that whatever else the machine does meets them alike; the best of each counts.
// Weights and scales learn, float32, AdamW with clipping and dropout. Prints a table.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "lathe/compress/quantize_model.h"
#include "lathe/core/error.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/train/text_source.h"
#include "lathe/train/training_graph.h"

namespace {

using namespace lathe;
using compress::TensorRole;

constexpr std::int32_t kTokens = 8192;

struct Contender {
  const char* name;
  compress::RoleFormats formats;
  std::unique_ptr<engine::CpuExecutor> executor = {};
  double best = 1e30;
};

std::vector<Contender> contenders() {
  std::vector<Contender> all;
  all.push_back({"float", {}});
  all.push_back(
      {"W8A8 int:8,channel / int:8,asymmetric",
       {{TensorRole::Weights, "int:8,channel"}, {TensorRole::Inputs, "int:8,asymmetric"}}});
  all.push_back(
      {"W4A4 int:4,channel / int:4,asymmetric",
       {{TensorRole::Weights, "int:4,channel"}, {TensorRole::Inputs, "int:4,asymmetric"}}});
  all.push_back({"fixed:8,4 weights, bias, activations",
                 {{TensorRole::Weights, "fixed:8,4"},
                  {TensorRole::Bias, "fixed:8,4"},
                  {TensorRole::Inputs, "fixed:8,4"}}});
  all.push_back({"mxint:8", {{TensorRole::Weights, "mxint:8"}, {TensorRole::Inputs, "mxint:8"}}});
  return all;
}

// Lengths like those of reviews, most a few hundred tokens, until the batch is full.
data::TokenizedDataset made_up() {
  data::TokenizedDataset texts;
  std::int32_t step = 0;
  while (static_cast<std::int32_t>(texts.ids.size()) < kTokens) {
    const std::int32_t wanted = 40 + step * 7919 % 473;
    const std::int32_t length =
        std::min(wanted, kTokens - static_cast<std::int32_t>(texts.ids.size()));
    for (std::int32_t i = 0; i < length; ++i)
      texts.ids.push_back(1000 + (step * 131 + i * 7919) % 29000);
    texts.offsets.push_back(static_cast<std::int64_t>(texts.ids.size()));
    texts.labels.push_back(step++ % 2);
  }
  return texts;
}

Feed make_feed(const data::TokenizedDataset& texts, std::int32_t step) {
  const auto tensor = [](const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>({static_cast<std::int64_t>(values.size())},
                                      std::span<const std::int32_t>(values));
  };
  std::vector<std::int32_t> examples;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(texts.size()); ++s) examples.push_back(s);
  Feed feed;
  feed["input_ids"] = tensor(texts.ids);
  feed["offsets"] = tensor({texts.offsets.begin(), texts.offsets.end()});
  feed["labels"] = tensor(texts.labels);
  feed["examples"] = tensor(examples);
  feed["random"] = tensor({1, 0, step});
  feed["learning_rate"] = Tensor::from<float>({}, {1e-5f});
  return feed;
}

int run(int argc, char** argv) {
  int threads = 2, rounds = 20;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    if (word == "--threads") threads = std::atoi(argv[i + 1]);
    if (word == "--rounds") rounds = std::atoi(argv[i + 1]);
  }
  ThreadPool pool(threads);
  const data::TokenizedDataset texts = made_up();
  std::vector<Contender> all = contenders();
  for (Contender& each : all) {
    io::Model model = io::load_model("bert-tiny", {.task = "classify", .seed = 1});
    if (!each.formats.empty()) {
      compress::QuantizeOptions options;
      options.rules = {{.formats = each.formats}};
      train::TokenizedTexts source(texts, {});
      compress::quantize_model(model, options, &source, {.pool = &pool});
    }
    State state = model.state;
    const train::TrainingGraph training = train::make_training_graph(model, {}, state);
    each.executor = std::make_unique<engine::CpuExecutor>(training.graph, std::move(state),
                                                          engine::ExecutionOptions{.pool = &pool});
  }
  for (std::int32_t step = 1; step <= rounds + 2; ++step)
    for (Contender& each : all) {
      const Feed feed = make_feed(texts, step);
      const auto begin = std::chrono::steady_clock::now();
      each.executor->run(feed);
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (step > 2) each.best = std::min(each.best, seconds);
    }
  fmt::print("{} tokens a step, {} threads, best of {} rounds\n\n", kTokens, threads, rounds);
  fmt::print("| step | ms | ratio |\n| --- | --- | --- |\n");
  for (const Contender& each : all)
    fmt::print("| {} | {:.1f} | {:.2f} |\n", each.name, each.best * 1e3,
               each.best / all.front().best);
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
