// How fast a training step of BERT runs on this machine's cores, beside their measured FMA peak.
//
//   bench_training MODEL_DIR CASE [--threads N] [--seconds S | --rounds N] [--warm-up S] [--each]
//   [--steps] [--precision P]
//
// CASE is `full:ROWSxLENGTH` (full rows of made-up ids) or `packed:FILE` (a token file as written
// by bench_inference; every batch is one step). Float32, the dropout of the configuration, AdamW
// with clipping. Prints one JSON line; bench/training_rival.py runs PyTorch on the same batches.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "bench/rounds.h"
#include "bench/stage_times.h"
#include "lathe/core/error.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/kernels.h"
#include "lathe/train/training_graph.h"

namespace {

using namespace lathe;

struct Sequences {
  std::vector<std::int32_t> ids, offsets{0};
};

std::vector<Sequences> made_up(std::int64_t rows, std::int64_t length) {
  Sequences batch;
  for (std::int64_t i = 0; i < rows * length; ++i)
    batch.ids.push_back(static_cast<std::int32_t>(1000 + i * 7919 % 29000));
  for (std::int64_t row = 1; row <= rows; ++row)
    batch.offsets.push_back(static_cast<std::int32_t>(row * length));
  return {batch};
}

std::vector<Sequences> read_batches(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: cannot be read", path);
  const auto get = [&] {
    std::int32_t value = 0;
    file.read(reinterpret_cast<char*>(&value), sizeof value);
    if (!file) fail("{}: ends too early", path);
    return value;
  };
  std::vector<Sequences> batches(static_cast<std::size_t>(get()));
  for (Sequences& batch : batches) {
    const std::int32_t sequences = get();
    for (std::int32_t s = 0; s < sequences; ++s)
      batch.offsets.push_back(batch.offsets.back() + get());
    for (std::int32_t i = 0; i < batch.offsets.back(); ++i) batch.ids.push_back(get());
  }
  return batches;
}

Feed make_feed(const Sequences& batch, std::int32_t step) {
  const auto tensor = [](std::vector<std::int64_t> dims, const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>(std::move(dims), std::span<const std::int32_t>(values));
  };
  const auto sequences = static_cast<std::int64_t>(batch.offsets.size()) - 1;
  std::vector<std::int32_t> labels, examples;
  for (std::int32_t s = 0; s < sequences; ++s) {
    labels.push_back(s % 2);
    examples.push_back(s);
  }
  Feed feed;
  feed["input_ids"] = tensor({static_cast<std::int64_t>(batch.ids.size())}, batch.ids);
  feed["offsets"] = tensor({sequences + 1}, batch.offsets);
  feed["labels"] = tensor({sequences}, labels);
  feed["examples"] = tensor({sequences}, examples);
  feed["random"] = tensor({3}, {1, 0, step});
  feed["learning_rate"] = Tensor::from<float>({}, {1e-5f});
  return feed;
}

int run(int argc, char** argv) {
  if (argc < 3)
    fail(
        "usage: bench_training MODEL_DIR CASE [--threads N] [--seconds S | --rounds N] "
        "[--warm-up S] [--each] [--steps] [--precision P]");
  const std::string what = argv[2];
  int threads = 2;
  bench::RoundOptions rounds;
  bool steps = false;
  engine::Precision precision = engine::Precision::Float32;
  for (int i = 3; i < argc; ++i) {
    if (rounds.take(argc, argv, i)) continue;
    const std::string word = argv[i];
    if (word == "--threads" && i + 1 < argc) threads = std::atoi(argv[++i]);
    if (word == "--steps") steps = true;
    if (word == "--precision" && i + 1 < argc) precision = engine::parse_precision(argv[++i]);
  }
  std::vector<Sequences> batches;
  if (what.starts_with("full:")) {
    long long rows = 0, length = 0;
    if (std::sscanf(what.c_str(), "full:%lldx%lld", &rows, &length) != 2)
      fail("{}: expected full:ROWSxLENGTH", what);
    batches = made_up(rows, length);
  } else if (what.starts_with("packed:")) {
    batches = read_batches(what.substr(7));
  } else {
    fail("{}: expected full:... or packed:...", what);
  }
  const io::Model model = io::load_model(argv[1], {.task = "classify"});
  State state = model.state;
  const auto start = std::chrono::steady_clock::now();
  const train::TrainingGraph training = train::make_training_graph(model, {}, state);
  ThreadPool pool(threads);
  engine::CpuExecutor executor(training.graph, std::move(state),
                               {.pool = &pool, .precision = precision});
  std::int32_t step = 0;
  executor.run(make_feed(batches.front(), ++step));
  const double first =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto run_all = [&] {
    for (const Sequences& batch : batches) executor.run(make_feed(batch, ++step));
  };
  run_all();
  const double peak = engine::fma_peak(best_isa(), 0.1);
  std::int64_t tokens = 0;
  for (const Sequences& batch : batches) tokens += static_cast<std::int64_t>(batch.ids.size());
  const bench::RoundTimes times = bench::time_rounds(rounds, run_all);
  const auto per_second = [&](double seconds) { return static_cast<double>(tokens) / seconds; };
  fmt::print(
      "{{\"case\": \"{}\", \"tokens\": {}, \"rounds\": {}, \"best_seconds\": {:.6f}, "
      "\"median_seconds\": {:.6f}, \"cpu_seconds_of_first_thread\": {:.6f}, "
      "\"tokens_per_second\": {:.0f}, \"median_tokens_per_second\": {:.0f}, "
      "\"plan_and_first_step_seconds\": {:.4f}, "
      "\"arena_mb\": {:.1f}, \"threads\": {}, \"fma_peak_gflops_per_core\": {:.1f}}}\n",
      what, tokens, times.seconds.size(), times.best(), times.median(), times.best_cpu,
      per_second(times.best()), per_second(times.median()), first,
      static_cast<double>(executor.report().arena_bytes) / 1e6, threads, peak);
  if (!steps) return 0;
  executor.set_timing(true);
  const bench::RoundTimes timed = bench::time_rounds(
      bench::kRoundsOfSteps, [&] { executor.run(make_feed(batches.back(), ++step)); });
  const auto count = static_cast<int>(timed.seconds.size());
  const engine::PlanReport report = executor.report();
  for (const engine::PlannedStep& planned : report.steps) {
    double gflops = 0;
    try {
      gflops = static_cast<double>(planned.flops.evaluate(report.last_sizes)) * count /
               planned.seconds / 1e9;
    } catch (const UserError&) {  // packed attention's cost is no polynomial of the sizes
    }
    if (planned.seconds / count < 1e-4 && !planned.is_reference) continue;
    fmt::print(stderr, "{:>3} {:<24} {:<62} {:>8.3f} ms {:>7.1f} GFLOP/s {:>5.1f} % of peak\n",
               planned.stage, kernel_text(planned), planned.name, planned.seconds * 1e3 / count,
               gflops, 100 * gflops / peak);
  }
  bench::print_stages(report, count, timed.total);
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
