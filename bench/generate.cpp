// How fast a causal language model adds tokens: one prompt of 128 made-up ids and 128 tokens behind
// it, beside the memory that a token makes the machine read and the bandwidth of a plain copy.
//
//   bench_generate MODEL_DIR [--threads N] [--device D] [--prompts N] [--prompt N] [--new N]
//   [--rounds N] [--cache float32|bf16|int:8] [--profile]
//
// Prints one JSON line. A token reads every weight but the table of words once, and the keys and
// values so far: `bytes` is that, as the model is stored in memory (packed weights by their codes).
// On a GPU `device_milliseconds` is what the last token takes when its run is repeated without a
// look at its result. --profile adds the thread time of a token's steps by kernel, on a CPU.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "bench/race.h"
#include "lathe/core/error.h"
#include "lathe/core/role.h"
#include "lathe/generate/generator.h"

namespace {

using namespace lathe;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Bytes a second that all threads read together, of more than any cache holds.
double read_bandwidth(ThreadPool& pool) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 28, kParts = 64;
  std::vector<std::uint64_t> values(kBytes / sizeof(std::uint64_t), 1);
  std::vector<std::uint64_t> sums(kParts);
  double best = 1e30;
  for (int round = 0; round < 5; ++round)
    best = std::min(best, seconds_of([&] {
                      pool.run(kParts, [&](std::int64_t part, int) {
                        const std::size_t count = values.size() / kParts;
                        const std::uint64_t* from =
                            values.data() + static_cast<std::size_t>(part) * count;
                        std::uint64_t sum[8] = {};
                        for (std::size_t i = 0; i < count; i += 8)
                          for (std::size_t j = 0; j < 8; ++j) sum[j] += from[i + j];
                        for (const std::uint64_t one : sum)
                          sums[static_cast<std::size_t>(part)] += one;
                      });
                    }));
  return static_cast<double>(kBytes) / best;
}

// What a token reads of the states: all but tables that single rows are looked up in.
std::int64_t weight_bytes(const io::Model& model) {
  std::int64_t bytes = 0;
  for (const NodeId id : model.graph.nodes_of("state")) {
    bool is_multiplied = false;
    for (const Use& use : model.graph.uses(id))
      is_multiplied = is_multiplied || !model.graph.is(use.user, "embedding");
    const auto found = model.state.find(model.graph.name(id));
    if (is_multiplied && found != model.state.end()) bytes += found->second.num_bytes();
  }
  return bytes;
}

// The thread time of all steps of a run, prompt included, by kernel and in the order of their
// first.
void print_profile(generate::Generator& generator, const std::vector<generate::Tokens>& ids,
                   std::int64_t new_tokens) {
  generator.executor().set_timing(true);
  generator.run(ids, {.max_new_tokens = new_tokens});
  struct Kernel {
    std::string name;
    int steps = 0;
    double seconds = 0;
  };
  std::vector<Kernel> kernels;
  int stages = 0;
  for (const engine::PlannedStep& step : generator.executor().report().steps) {
    if (step.is_for_states) continue;
    stages = std::max(stages, step.stage + 1);
    const std::string name = engine::kernel_text(step);
    auto found = std::ranges::find(kernels, name, &Kernel::name);
    if (found == kernels.end()) found = kernels.insert(found, Kernel{name});
    ++found->steps;
    found->seconds += step.seconds;
  }
  fmt::print("{} stages\n", stages);
  for (const Kernel& kernel : kernels)
    fmt::print("{:40} {:4} steps {:9.3f} ms a token\n", kernel.name, kernel.steps,
               1e3 * kernel.seconds / static_cast<double>(new_tokens));
}

int run(int argc, char** argv) {
  std::string model_name, device = "cpu", cache = "float32";
  int threads = 0, rounds = 3;
  bool profiles = false;
  std::int64_t prompts = 1, prompt_length = 128, new_tokens = 128;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] {
      if (i + 1 >= argc) fail("{}: expected a value", word);
      return std::string(argv[++i]);
    };
    if (word == "--threads")
      threads = std::stoi(value());
    else if (word == "--device")
      device = value();
    else if (word == "--prompts")
      prompts = std::stoll(value());
    else if (word == "--prompt")
      prompt_length = std::stoll(value());
    else if (word == "--new")
      new_tokens = std::stoll(value());
    else if (word == "--rounds")
      rounds = std::stoi(value());
    else if (word == "--cache")
      cache = value();
    else if (word == "--profile")
      profiles = true;
    else
      model_name = word;
  }
  if (model_name.empty()) fail("usage: bench_generate MODEL_DIR [--threads N] ...");
  io::Model model = io::load_model(model_name, {.task = "causal-lm"});
  model.fresh.clear();  // how fast it is does not depend on what it was trained for
  ThreadPool pool(threads);
  generate::Generator generator(model,
                                {.device = device, .pool = &pool, .uses_integers = device == "cpu"},
                                generate::parse_cache_format(cache));
  std::vector<generate::Tokens> ids(static_cast<std::size_t>(prompts));
  for (std::size_t p = 0; p < ids.size(); ++p)
    for (std::int64_t i = 0; i < prompt_length; ++i)
      ids[p].push_back(static_cast<std::int32_t>((i * 7919 + static_cast<std::int64_t>(p) * 31) %
                                                 generator.vocabulary()));
  const auto timed = [&](std::int64_t count) {
    return seconds_of([&] { generator.run(ids, {.max_new_tokens = count}); });
  };
  timed(new_tokens);  // the plan, and pages that were never touched
  double prefill = 1e30, whole = 1e30;
  for (int round = 0; round < rounds; ++round) {
    prefill = std::min(prefill, timed(1));
    whole = std::min(whole, timed(new_tokens));
  }
  const double decode = (whole - prefill) / static_cast<double>(new_tokens - 1);
  std::int64_t cache_row = 0;
  for (const auto& [name, tensor] : generator.executor().state())
    if (name.ends_with("_cache")) cache_row += tensor.num_bytes() / tensor.dim(0);
  const double bytes =
      static_cast<double>(weight_bytes(model)) +
      static_cast<double>(prompts * cache_row) *
          (static_cast<double>(prompt_length) + static_cast<double>(new_tokens) / 2);
  fmt::print(
      "{{\"model\": \"{}\", \"device\": \"{}\", \"cache\": \"{}\", \"threads\": {}, "
      "\"prompts\": {}, "
      "\"prompt_tokens_per_second\": {:.0f}, \"tokens_per_second\": {:.1f}, "
      "\"milliseconds_per_token\": {:.3f}, \"bytes_per_token\": {:.0f}",
      model_name, device, cache, pool.num_threads(), prompts,
      static_cast<double>(prompts * prompt_length) / prefill, static_cast<double>(prompts) / decode,
      1e3 * decode, bytes);
  if (device == "cpu") {
    const double bandwidth = read_bandwidth(pool);
    fmt::print(", \"gigabytes_per_second\": {:.1f}, \"share_of_bandwidth\": {:.2f}",
               bandwidth / 1e9, bytes / decode / bandwidth);
  }
  if (const std::vector<double> again = generator.executor().repeat(rounds, true); !again.empty())
    fmt::print(", \"device_milliseconds\": {:.3f}", 1e3 * *std::ranges::min_element(again));
  fmt::print("}}\n");
  if (profiles) print_profile(generator, ids, new_tokens);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& wrong) {
    fmt::print(stderr, "error: {}\n", wrong.what());
    return 1;
  }
}
