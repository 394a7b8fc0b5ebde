// How fast BERT runs forward on this machine's cores, beside their measured FMA peak.
//
//   bench_inference MODEL_DIR CASE [--threads N] [--seconds S | --rounds N] [--warm-up S] [--each]
//   [--steps] [--precision P] [--integers]
//
// With --integers a packed model multiplies whole numbers (lathe eval's way), else the floats that
// stand for them (lathe eval --simulate).
//
// CASE is `padded:ROWSxLENGTH` (full rows of made-up ids, padded executor) or `packed:FILE` (real
// batches from a token file as written by `bench_inference MODEL_DIR dump:DATA:FILE:BATCHES`: int32
// batch count, then for each batch its sequence count, lengths and ids). Prints one JSON line;
// bench/inference_rival.py runs PyTorch and onnxruntime on the same batches and prints the ratios.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "bench/rounds.h"
#include "bench/stage_times.h"
#include "lathe/core/error.h"
#include "lathe/data/dataset.h"
#include "lathe/engine/cpu/kernels.h"
#include "lathe/train/classifier.h"
#include "lathe/train/make_source.h"
#include "lathe/train/text_source.h"

namespace {

using namespace lathe;

constexpr std::int64_t kRivalBatch = 32;

// The same ids in Python: 1000 + (i * 7919) mod 29000, in row-major order.
data::Batch made_up_batch(std::int64_t rows, std::int64_t length) {
  data::Batch batch;
  for (std::int64_t i = 0; i < rows * length; ++i)
    batch.ids.push_back(static_cast<std::int32_t>(1000 + i * 7919 % 29000));
  for (std::int64_t row = 0; row < rows; ++row) {
    batch.offsets.push_back(static_cast<std::int32_t>((row + 1) * length));
    batch.labels.push_back(0);
    batch.example_indices.push_back(row);
  }
  return batch;
}

void dump(const io::Model& model, const std::string& data_spec, const std::string& path,
          std::int64_t num_batches) {
  const std::shared_ptr<const data::Tokenizer> tokenizer = train::load_tokenizer(model);
  ThreadPool pool;
  const data::TokenizedDataset tokens =
      data::tokenize(data::load_dataset(data_spec, "test"), *tokenizer, train::max_length(model),
                     data::Truncation::Head, pool);
  const data::BatchPlan plan = data::plan_batches(
      tokens.lengths(),
      {.max_examples = kRivalBatch, .order = data::BatchOrder::Shuffled, .seed = 1});
  std::ofstream file(path, std::ios::binary);
  const auto put = [&](std::int32_t value) {
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  num_batches = std::min(num_batches, plan.num_batches());
  put(static_cast<std::int32_t>(num_batches));
  for (std::int64_t b = 0; b < num_batches; ++b) {
    const data::Batch batch = data::make_batch(tokens, plan.examples(b));
    put(batch.num_sequences());
    for (std::int32_t s = 0; s < batch.num_sequences(); ++s)
      put(batch.offsets[static_cast<std::size_t>(s) + 1] -
          batch.offsets[static_cast<std::size_t>(s)]);
    for (const std::int32_t id : batch.ids) put(id);
  }
}

std::vector<data::Batch> read_batches(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: cannot be read", path);
  const auto get = [&] {
    std::int32_t value = 0;
    file.read(reinterpret_cast<char*>(&value), sizeof value);
    if (!file) fail("{}: ends too early", path);
    return value;
  };
  std::vector<data::Batch> batches(static_cast<std::size_t>(get()));
  for (data::Batch& batch : batches) {
    const std::int32_t sequences = get();
    for (std::int32_t s = 0; s < sequences; ++s) {
      batch.offsets.push_back(batch.offsets.back() + get());
      batch.labels.push_back(0);
      batch.example_indices.push_back(s);
    }
    for (std::int32_t i = 0; i < batch.offsets.back(); ++i) batch.ids.push_back(get());
  }
  return batches;
}

void print_steps(const engine::PlanReport& report, double peak, int rounds) {
  for (const engine::PlannedStep& step : report.steps) {
    SymbolValues sizes = report.last_sizes;
    double gflops = 0;
    try {
      gflops = static_cast<double>(step.flops.evaluate(sizes)) * rounds / step.seconds / 1e9;
    } catch (const UserError&) {  // packed attention's cost is no polynomial of the sizes
    }
    fmt::print(stderr,
               "  {:<24} {:<55} {:>9.3f} ms {:>7.1f} GFLOP/s a thread {:>5.1f} % of peak  {}\n",
               kernel_text(step), step.name, step.seconds * 1e3 / rounds, gflops,
               100 * gflops / peak, step.choice.reason);
  }
}

int run(int argc, char** argv) {
  if (argc < 3)
    fail(
        "usage: bench_inference MODEL_DIR CASE [--threads N] [--seconds S | --rounds N] "
        "[--warm-up S] [--each] [--steps] [--precision P] [--integers]");
  const std::string what = argv[2];
  int threads = 2;
  bench::RoundOptions rounds;
  bool steps = false;
  engine::Precision precision = engine::Precision::Float32;
  bool uses_integers = false;
  for (int i = 3; i < argc; ++i) {
    if (rounds.take(argc, argv, i)) continue;
    const std::string word = argv[i];
    if (word == "--threads" && i + 1 < argc) threads = std::atoi(argv[++i]);
    if (word == "--steps") steps = true;
    if (word == "--integers") uses_integers = true;
    if (word == "--precision" && i + 1 < argc) precision = engine::parse_precision(argv[++i]);
  }
  const io::Model model = io::load_model(argv[1], {.task = "classify"});
  if (what.starts_with("dump:")) {
    const std::string rest = what.substr(5);
    const std::size_t first = rest.find(':'), second = rest.find(':', first + 1);
    dump(model, rest.substr(0, first), rest.substr(first + 1, second - first - 1),
         std::atoi(rest.substr(second + 1).c_str()));
    return 0;
  }
  ThreadPool pool(threads);
  train::ClassifierOptions options;
  options.allows_fresh = true;
  options.execution = {.pool = &pool, .precision = precision, .uses_integers = uses_integers};
  train::TextFeeding feeding;
  std::vector<data::Batch> batches;
  if (what.starts_with("padded:")) {
    long long rows = 0, length = 0;
    if (std::sscanf(what.c_str(), "padded:%lldx%lld", &rows, &length) != 2)
      fail("{}: expected padded:ROWSxLENGTH", what);
    options.is_padded = true;
    feeding.padding_id = 0;
    batches.push_back(made_up_batch(rows, length));
  } else if (what.starts_with("packed:")) {
    batches = read_batches(what.substr(7));
  } else {
    fail("{}: expected padded:..., packed:... or dump:...", what);
  }
  train::Classifier classifier(model, options);
  engine::Executor& executor = classifier.executor();
  const double peak = engine::fma_peak(best_isa(), 0.1);
  const auto run_all = [&] {
    for (const data::Batch& batch : batches)
      classifier.logits(train::evaluation_feed(batch, feeding));
  };
  run_all();  // lays the arena out
  std::int64_t tokens = 0;
  for (const data::Batch& batch : batches) tokens += batch.num_tokens();
  const bench::RoundTimes times = bench::time_rounds(rounds, run_all);
  const auto per_second = [&](double seconds) { return static_cast<double>(tokens) / seconds; };
  fmt::print(
      "{{\"case\": \"{}\", \"tokens\": {}, \"rounds\": {}, \"best_seconds\": {:.6f}, "
      "\"median_seconds\": {:.6f}, \"cpu_seconds_of_first_thread\": {:.6f}, "
      "\"tokens_per_second\": {:.0f}, \"median_tokens_per_second\": {:.0f}, \"threads\": {}, "
      "\"fma_peak_gflops_per_core\": {:.1f}}}\n",
      what, tokens, times.seconds.size(), times.best(), times.median(), times.best_cpu,
      per_second(times.best()), per_second(times.median()), threads, peak);
  if (steps) {
    executor.set_timing(true);
    const bench::RoundTimes timed = bench::time_rounds(bench::kRoundsOfSteps, [&] {
      classifier.logits(train::evaluation_feed(batches.back(), feeding));
    });
    const auto count = static_cast<int>(timed.seconds.size());
    print_steps(executor.report(), peak, count);
    bench::print_stages(executor.report(), count, timed.total);
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
