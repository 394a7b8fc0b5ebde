// How good the samplers are: the best value of each of many seeded runs.
//
//   bench_samplers OBJECTIVE SAMPLER FIRST_SEED NUM_SEEDS NUM_TRIALS [NASBENCH.csv]
//
// Prints one line per seed: the true value of the trial that looked best. OBJECTIVE is branin,
// hartmann6 or rosenbrock10, any of them with "-noisy", or a column of the NAS-Bench-201 table
// (cifar10_valid, ...), which is maximized. bench/samplers_rival.py runs Optuna on the same and
// compares the two.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>

#include "bench/nasbench_table.h"
#include "lathe/core/error.h"
#include "lathe/study/math/keyed_random.h"
#include "lathe/study/math/random_draws.h"
#include "lathe/study/study.h"

namespace {

using namespace lathe::study;

// The true value at a point that the trial is asked for.
using Function = std::function<double(Trial&)>;

double branin(Trial& trial) {
  const double x = trial.suggest_float("x0", -5, 10);
  const double y = trial.suggest_float("x1", 0, 15);
  const double pi = std::numbers::pi;
  const double bend = y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
  return bend * bend + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
}

double hartmann6(Trial& trial) {
  static constexpr double kHeight[4] = {1.0, 1.2, 3.0, 3.2};
  static constexpr double kWidth[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                          {0.05, 10, 17, 0.1, 8, 14},
                                          {3, 3.5, 1.7, 10, 17, 8},
                                          {17, 8, 0.05, 10, 0.1, 14}};
  static constexpr double kPlace[4][6] = {{1312, 1696, 5569, 124, 8283, 5886},
                                          {2329, 4135, 8307, 3736, 1004, 9991},
                                          {2348, 1451, 3522, 2883, 3047, 6650},
                                          {4047, 8828, 8732, 5743, 1091, 381}};
  std::array<double, 6> x;
  for (std::size_t i = 0; i < 6; ++i) x[i] = trial.suggest_float(fmt::format("x{}", i), 0, 1);
  double sum = 0;
  for (std::size_t peak = 0; peak < 4; ++peak) {
    double distance = 0;
    for (std::size_t i = 0; i < 6; ++i)
      distance += kWidth[peak][i] * std::pow(x[i] - 1e-4 * kPlace[peak][i], 2);
    sum -= kHeight[peak] * std::exp(-distance);
  }
  return sum;
}

double rosenbrock10(Trial& trial) {
  std::array<double, 10> x;
  for (std::size_t i = 0; i < 10; ++i) x[i] = trial.suggest_float(fmt::format("x{}", i), -5, 10);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < 10; ++i)
    sum += 100 * std::pow(x[i + 1] - x[i] * x[i], 2) + std::pow(1 - x[i], 2);
  return sum;
}

// A column of the table by the six operations of a cell.
Function nasbench(const std::string& file, const std::string& column) {
  return [table = read_nasbench(file, column)](Trial& trial) {
    const CategoricalDistribution operations{{0, 1, 2, 3, 4}};
    std::size_t cell = 0;
    for (int edge = 0; edge < kNasbenchEdges; ++edge)
      cell = cell * kNasbenchOperations +
             static_cast<std::size_t>(trial.suggest(fmt::format("e{}", edge), operations));
    return table[cell];
  };
}

struct Problem {
  Function function;
  Direction direction = Direction::Minimize;
  double noise = 0;  // standard deviation
};

Problem find_problem(std::string name, const std::string& file) {
  Problem problem;
  const std::string mark = "-noisy";
  const bool is_noisy = name.ends_with(mark);
  if (is_noisy) name.resize(name.size() - mark.size());
  double noise = 0;
  if (name == "branin") {
    problem.function = branin;
    noise = 2;
  } else if (name == "hartmann6") {
    problem.function = hartmann6;
    noise = 0.1;
  } else if (name == "rosenbrock10") {
    problem.function = rosenbrock10;
    noise = 5000;
  } else {
    problem.function = nasbench(file, name);
    problem.direction = Direction::Maximize;
  }
  if (is_noisy) problem.noise = noise;
  return problem;
}

double run(const Problem& problem, const std::string& sampler, std::uint64_t seed, int num_trials) {
  Study study = Study::create(open_storage("memory:"), "bench", {problem.direction},
                              {.sampler = sampler, .seed = seed});
  std::vector<double> truth;
  study.optimize(
      [&](Trial& trial) {
        const double value = problem.function(trial);
        truth.push_back(value);
        KeyedRandom random(seed, static_cast<std::uint64_t>(trial.number()), "noise");
        const double noise = problem.noise > 0 ? problem.noise * draw_normal(random) : 0;
        return Outcome{.values = {value + noise}};
      },
      {.trials = num_trials});
  return truth[static_cast<std::size_t>(study.best()->number)];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    fmt::print(stderr,
               "usage: bench_samplers OBJECTIVE SAMPLER FIRST_SEED NUM_SEEDS NUM_TRIALS [CSV]\n");
    return 1;
  }
  try {
    const Problem problem = find_problem(argv[1], argc > 6 ? argv[6] : "nb201.csv");
    const int first = std::atoi(argv[3]);
    for (int seed = first; seed < first + std::atoi(argv[4]); ++seed)
      fmt::print("{:.17g}\n",
                 run(problem, argv[2], static_cast<std::uint64_t>(seed), std::atoi(argv[5])));
  } catch (const lathe::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.message());
    return 1;
  }
}
