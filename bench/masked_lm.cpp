// The loss of masked-language-model training from nothing, step by step, for comparison.
//
//   bench_masked_lm MODEL_DIR DATA_DIR STEPS OUT.bin
//
// MODEL_DIR is a fresh model (`lathe export --model bert-tiny --task mlm --out DIR`, with a
// vocab.txt). Trains on batches of 32 texts of at most 128 tokens with AdamW at a constant 1e-3,
// clipping 1.0, no decay and no dropout, prints the loss of each step, and writes the batches to
// OUT.bin: int32 step count, then for each step its sequence count, lengths, masked ids, count of
// chosen tokens, their places and labels. bench/masked_lm_rival.py trains PyTorch on the same
// batches.

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "lathe/core/error.h"
#include "lathe/data/dataset.h"
#include "lathe/data/tokenized_dataset.h"
#include "lathe/engine/executor.h"
#include "lathe/train/make_source.h"
#include "lathe/train/training_feed.h"
#include "lathe/train/training_graph.h"

namespace {

using namespace lathe;

constexpr std::int64_t kRows = 32;
constexpr std::int64_t kLength = 128;
constexpr double kRate = 1e-3;
constexpr std::uint64_t kSeed = 1;

void write(std::ofstream& file, std::int32_t value) {
  file.write(reinterpret_cast<const char*>(&value), sizeof value);
}

void write(std::ofstream& file, const Tensor& tensor) {
  for (const std::int32_t value : tensor.data<std::int32_t>()) write(file, value);
}

int run(int argc, char** argv) {
  if (argc < 5) fail("usage: bench_masked_lm MODEL_DIR DATA_DIR STEPS OUT.bin");
  const io::Model model = io::load_model(argv[1], {.task = "mlm"});
  const std::shared_ptr<const data::Tokenizer> tokenizer = train::load_tokenizer(model);
  data::Dataset dataset = data::load_dataset(argv[2], "train");
  ThreadPool pool;
  const data::TokenizedDataset tokens =
      data::tokenize(dataset, *tokenizer, kLength, data::Truncation::Head, pool);
  const data::BatchPlan plan = data::plan_batches(
      tokens.lengths(),
      {.max_examples = kRows, .order = data::BatchOrder::Shuffled, .seed = kSeed});
  State state = model.state;
  const train::TrainingGraph training = train::make_training_graph(
      model, {.objective = "mlm", .weight_decay = 0, .dropout = false}, state);
  const auto executor = engine::make_executor(training.graph, state, {.pool = &pool});
  const train::Objective objective = train::make_objective("mlm", *tokenizer, 0.15, kSeed);

  const std::int64_t steps = std::min<std::int64_t>(std::atoll(argv[3]), plan.num_batches());
  std::ofstream file(argv[4], std::ios::binary);
  write(file, static_cast<std::int32_t>(steps));
  for (std::int64_t step = 1; step <= steps; ++step) {
    const data::Batch batch = data::make_batch(tokens, plan.examples(step - 1));
    Feed feed = train::make_training_feed(batch, objective, 0);
    train::set_step_inputs(feed, kRate, kSeed, step, true);
    write(file, batch.num_sequences());
    for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s)
      write(file, batch.offsets[s + 1] - batch.offsets[s]);
    write(file, feed.at("input_ids"));
    write(file, static_cast<std::int32_t>(feed.at("masked").num_elements()));
    write(file, feed.at("masked"));
    write(file, feed.at("labels"));
    const Feed outputs = executor->run(feed);
    fmt::print("{:.6f}\n", outputs.at("loss_sum").at(0) / outputs.at("loss_count").at(0));
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
