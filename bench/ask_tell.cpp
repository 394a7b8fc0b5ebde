// What a sampler costs: milliseconds to ask for a trial with all its parameters and to tell its
// result, in memory, after many trials.
//
//   bench_ask_tell [SAMPLER NUM_TRIALS [declared]]
//
// The space has 72 categorical parameters: for each of 24 layers a type of number, and for two of
// the three types a width of their own. Trials before the last 50 are drawn at random, which costs
// next to nothing; the last 50 are timed. Without arguments, all cases that docs/performance.md
// quotes. bench/ask_tell_rival.py runs Optuna on the same.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "lathe/core/error.h"
#include "lathe/study/study.h"

namespace {

using namespace lathe::study;
using Clock = std::chrono::steady_clock;

constexpr int kLayers = 24;
constexpr int kTimed = 50;

// A whole number's type, a fraction's type, and none.
DistributionPtr type_choices() {
  CategoricalDistribution list;
  for (const char* name : {"int", "fixed", "binary"}) list.choices.emplace_back(std::string(name));
  return std::make_shared<const Distribution>(std::move(list));
}

DistributionPtr width_choices() {
  CategoricalDistribution list;
  for (const int width : {2, 4, 6, 8, 16}) list.choices.emplace_back(std::int64_t{width});
  return std::make_shared<const Distribution>(std::move(list));
}

Space layers() {
  const DistributionPtr types = type_choices();
  const DistributionPtr widths = width_choices();
  Space space;
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string name = fmt::format("layer{:02}", layer);
    space.push_back({name + ".type", types});
    space.push_back({name + ".int_width", widths, name + ".type", {0}});
    space.push_back({name + ".fixed_width", widths, name + ".type", {1}});
  }
  return space;
}

double loss(const TrialRecord& trial) {
  double sum = 0;
  for (std::size_t i = 0; i < trial.parameters.size(); ++i)
    sum += std::cos(1.7 * trial.parameters[i].value + static_cast<double>(i));
  return sum;
}

void run(Study& study, const Space* asked, int num_trials) {
  for (int i = 0; i < num_trials; ++i) {
    std::optional<Trial> trial = study.ask();
    if (asked != nullptr) trial->suggest(*asked);
    lathe::check(study.tell(*trial, {.values = {loss(trial->record())}}), "the trial to be ours");
  }
}

void measure(const std::string& sampler, int num_trials, bool is_declared) {
  const std::shared_ptr<Storage> storage = open_storage("memory:");
  const Space space = layers();
  StudyOptions options{.sampler = "random", .seed = 1};
  if (is_declared) options.space = space;
  const Space* asked = is_declared ? nullptr : &space;
  {
    Study study = Study::create(storage, "bench", {Direction::Minimize}, options);
    run(study, asked, num_trials - kTimed);
  }
  Study study = Study::open(storage, "bench", {.sampler = sampler});
  run(study, asked, 1);  // reads the trials that are there
  const Clock::time_point start = Clock::now();
  run(study, asked, kTimed - 1);
  const std::chrono::duration<double, std::milli> time = Clock::now() - start;
  fmt::print("{:44} {:8} {:6} trials: {:8.3f} ms\n", sampler, is_declared ? "declared" : "",
             num_trials, time.count() / (kTimed - 1));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc >= 3) {
      measure(argv[1], std::atoi(argv[2]), argc > 3 && std::strcmp(argv[3], "declared") == 0);
      return 0;
    }
    for (const int num_trials : {500, 10000}) {
      for (const char* sampler : {"random", "tpe:multivariate=false,group=false", "tpe:group=false",
                                  "tpe", "tpe:preset=optuna-3,multivariate=true", "auto"})
        measure(sampler, num_trials, false);
      measure("tpe", num_trials, true);
      measure("auto", num_trials, true);
    }
  } catch (const lathe::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.message());
    return 1;
  }
}
