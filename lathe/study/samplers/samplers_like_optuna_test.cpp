// Samplers against Debian's Optuna 3.1 in the same moment: the presets draw what it draws.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lathe/study/samplers/sampler.h"
#include "lathe/study/testing/test_play.h"

namespace lathe::study {
namespace {

// Prints one line per trial: the internal values of its parameters, and "tie" where two different
// candidates scored the same but for rounding, from which on the sequences may part.
constexpr const char* kDriver = R"(
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, optuna
optuna.logging.set_verbosity(optuna.logging.CRITICAL)
from optuna.samplers import TPESampler
state = {"tie": False}
compare = TPESampler._compare.__func__
def watched(cls, samples, log_l, log_g):
    score = log_l - log_g
    best = int(np.argmax(score))
    for i in range(score.size):
        if abs(score[i] - score[best]) < 1e-9 and any(v[i] != v[best] for v in samples.values()):
            state["tie"] = True
    return compare(cls, samples, log_l, log_g)
TPESampler._compare = classmethod(watched)
def mixed(*values):
    total = 0
    for i, value in enumerate(values):
        total = (total * 31 + int(value) * (2 * i + 7)) % 1009
    return float(total)
CHOICES = {n: ["c%d" % i for i in range(n)] for n in range(2, 12)}
def choice(trial, name, n):
    return CHOICES[n].index(trial.suggest_categorical(name, CHOICES[n]))
%OBJECTIVE%
sampler = globals().get("SAMPLER") or TPESampler(seed=SEED, **OPTIONS)
study = optuna.create_study(directions=DIRECTIONS, sampler=sampler)
for _ in range(TRIALS):
    state["tie"] = False
    trial = study.ask()
    try:
        study.tell(trial, objective(trial))
    except optuna.TrialPruned:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    frozen = study.trials[-1]
    values = [frozen.distributions[k].to_internal_repr(v) for k, v in frozen.params.items()]
    print("tie" if state["tie"] else "ok", *[repr(float(v)) for v in values])
)";

bool has_optuna() {
  static const bool has = std::system(
                              "/usr/bin/python3 -c 'import optuna; assert "
                              "optuna.__version__ == \"3.1.0\"' >/dev/null 2>&1") == 0;
  return has;
}

struct Line {
  bool is_tie = false;
  std::vector<double> values;
};

std::vector<Line> run_optuna(const std::string& objective) {
  std::string script = kDriver;
  const std::string mark = "%OBJECTIVE%";
  script.replace(script.find(mark), mark.size(), objective);
  const auto path =
      std::filesystem::temp_directory_path() / ("lathe_tpe_" + std::to_string(::getpid()) + ".py");
  std::ofstream(path) << script;
  std::vector<Line> lines;
  FILE* pipe = ::popen(("/usr/bin/python3 " + path.string()).c_str(), "r");
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) {
    std::istringstream words(buffer);
    std::string word;
    words >> word;
    Line line{word == "tie", {}};
    for (double value = 0; words >> value;) line.values.push_back(value);
    lines.push_back(std::move(line));
  }
  EXPECT_EQ(::pclose(pipe), 0) << script;
  std::filesystem::remove(path);
  return lines;
}

double mixed(const std::vector<double>& values) {
  int total = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    total = (total * 31 + static_cast<int>(values[i]) * (2 * static_cast<int>(i) + 7)) % 1009;
  return total;
}

Distribution choices(int count) {
  CategoricalDistribution result;
  for (int i = 0; i < count; ++i) result.choices.push_back("c" + std::to_string(i));
  return result;
}

// Plays our sampler and compares until the first tie; returns how many trials were equal.
int compare(const std::string& sampler, std::uint64_t seed, const std::string& python,
            const Play::Objective& objective, double tolerance = 0,
            std::vector<Direction> directions = {Direction::Minimize},
            const Space* space = nullptr) {
  const std::vector<Line> expected = run_optuna(python);
  const auto made = make_sampler(sampler, seed, space);
  Play play(*made, seed, std::move(directions), space);
  int equal = 0;
  for (const Line& line : expected) {
    if (line.is_tie) break;
    const TrialRecord& trial = play.run(objective);
    EXPECT_EQ(trial.parameters.size(), line.values.size()) << "trial " << equal;
    for (std::size_t i = 0; i < std::min(trial.parameters.size(), line.values.size()); ++i)
      EXPECT_NEAR(trial.parameters[i].value, line.values[i],
                  tolerance * std::max(1.0, std::abs(line.values[i])))
          << "trial " << equal << " " << trial.parameters[i].name;
    if (testing::Test::HasFailure()) break;
    ++equal;
  }
  return equal;
}

TEST(TpeLikeOptuna, MultivariateOnCategoricalParameters) {
  if (!has_optuna()) GTEST_SKIP() << "python3-optuna 3.1 is not installed";
  const int equal =
      compare("tpe:preset=optuna-3,multivariate=true", 3, R"(
DIRECTIONS, SEED, TRIALS, OPTIONS = ["minimize"], 3, 120, {"multivariate": True}
def objective(trial):
    return mixed(choice(trial, "b", 4), choice(trial, "a", 3), choice(trial, "d", 9), choice(trial, "c", 5))
)",
              [](const Play::Suggest& suggest, TrialRecord& trial) {
                trial.values = {mixed({suggest("b", choices(4)), suggest("a", choices(3)),
                                       suggest("d", choices(9)), suggest("c", choices(5))})};
              });
  RecordProperty("equal_trials", equal);
  EXPECT_GE(equal, 60);
}

TEST(TpeLikeOptuna, IndependentOnCategoricalParameters) {
  if (!has_optuna()) GTEST_SKIP() << "python3-optuna 3.1 is not installed";
  const int equal = compare(
      "tpe:preset=optuna-3,startup=60", 5, R"(
DIRECTIONS, SEED, TRIALS, OPTIONS = ["maximize"], 5, 120, {"n_startup_trials": 60}
def objective(trial):
    return mixed(choice(trial, "b", 4), choice(trial, "a", 3), choice(trial, "d", 9))
)",
      [](const Play::Suggest& suggest, TrialRecord& trial) {
        trial.values = {
            mixed({suggest("b", choices(4)), suggest("a", choices(3)), suggest("d", choices(9))})};
      },
      0, {Direction::Maximize});
  RecordProperty("equal_trials", equal);
  EXPECT_GE(equal, 11);
}

TEST(TpeLikeOptuna, GroupedOnConditionalParameters) {
  if (!has_optuna()) GTEST_SKIP() << "python3-optuna 3.1 is not installed";
  const int equal = compare(
      "tpe:preset=optuna-3,multivariate=true,group=true,startup=90", 1, R"(
DIRECTIONS, SEED, TRIALS, OPTIONS = ["minimize"], 1, 140, {"multivariate": True, "group": True, "n_startup_trials": 90}
def objective(trial):
    kind = choice(trial, "kind", 3)
    depth = choice(trial, "depth", 5)
    if kind == 0:
        return mixed(kind, depth, choice(trial, "width", 6), choice(trial, "fraction", 4))
    if kind == 1:
        return mixed(kind, depth, choice(trial, "block", 7))
    return mixed(kind, depth)
)",
      [](const Play::Suggest& suggest, TrialRecord& trial) {
        std::vector<double> values = {suggest("kind", choices(3)), suggest("depth", choices(5))};
        if (values[0] == 0) {
          values.push_back(suggest("width", choices(6)));
          values.push_back(suggest("fraction", choices(4)));
        } else if (values[0] == 1) {
          values.push_back(suggest("block", choices(7)));
        }
        trial.values = {mixed(values)};
      });
  RecordProperty("equal_trials", equal);
  EXPECT_GE(equal, 20);
}

const char* const kNumericObjective = R"(
def objective(trial):
    x = trial.suggest_float("x", -5, 10)
    y = trial.suggest_float("y", 1e-4, 1, log=True)
    n = trial.suggest_int("n", 2, 16, step=2)
    m = trial.suggest_int("m", 1, 512, log=True)
    s = trial.suggest_float("s", 0, 1, step=0.05)
    c = choice(trial, "c", 3)
    return (x - 1) ** 2 + (np.log10(y) + 2) ** 2 + (n - 6) ** 2 / 10 + np.log(m / 20) ** 2 + s * c
)";

void numeric(const Play::Suggest& suggest, TrialRecord& trial) {
  const double x = suggest("x", FloatDistribution{.low = -5, .high = 10});
  const double y = suggest("y", FloatDistribution{.low = 1e-4, .high = 1, .log = true});
  const double n = suggest("n", IntDistribution{.low = 2, .high = 16, .step = 2});
  const double m = suggest("m", IntDistribution{.low = 1, .high = 512, .log = true});
  const double s = suggest("s", FloatDistribution{.low = 0, .high = 1, .step = 0.05});
  const double c = suggest("c", choices(3));
  trial.values = {std::pow(x - 1, 2) + std::pow(std::log10(y) + 2, 2) + std::pow(n - 6, 2) / 10 +
                  std::pow(std::log(m / 20), 2) + s * c};
}

TEST(RandomLikeOptuna, DrawsEveryKindOfParameter) {
  if (!has_optuna()) GTEST_SKIP() << "python3-optuna 3.1 is not installed";
  const int equal = compare("random:preset=optuna-3", 12,
                            std::string("DIRECTIONS, TRIALS = ['minimize'], 200\n"
                                        "SAMPLER = optuna.samplers.RandomSampler(seed=12)") +
                                kNumericObjective,
                            numeric);
  EXPECT_EQ(equal, 200);
}

TEST(GridLikeOptuna, WalksInTheSameOrder) {
  if (!has_optuna()) GTEST_SKIP() << "python3-optuna 3.1 is not installed";
  const auto n = std::make_shared<const Distribution>(IntDistribution{.low = 1, .high = 20});
  const auto c = std::make_shared<const Distribution>(choices(9));
  const Space space = {{"n", n}, {"c", c}};
  const int equal = compare(
      "grid:preset=optuna-3", 13, R"(
DIRECTIONS, TRIALS = ["minimize"], 179  # the last one would stop a study that is not being optimized
SAMPLER = optuna.samplers.GridSampler({"n": list(range(1, 21)), "c": CHOICES[9]}, seed=13)
def objective(trial):
    return trial.suggest_int("n", 1, 20) + choice(trial, "c", 9)
)",
      [&](const Play::Suggest& suggest, TrialRecord& trial) {
        const double number = suggest("n", *n);
        trial.values = {number + suggest("c", *c)};
      },
      0, {Direction::Minimize}, &space);
  EXPECT_EQ(equal, 179);
}

// Optuna inverts the normal distribution by bisection, we by Newton's method; an error of 1e-9
// would need a kernel that amplifies the last bits a millionfold. Numbers here do not repeat: which
// of two equal observations is whose neighbour is left to NumPy's unstable sort.
TEST(TpeLikeOptuna, IndependentOnNumbers) {
  if (!has_optuna()) GTEST_SKIP() << "python3-optuna 3.1 is not installed";
  const int equal = compare(
      "tpe:preset=optuna-3", 2, R"(
DIRECTIONS, SEED, TRIALS, OPTIONS = ["minimize"], 2, 60, {}
def objective(trial):
    x = trial.suggest_float("x", -5, 10)
    y = trial.suggest_float("y", 1e-4, 1, log=True)
    n = trial.suggest_int("n", 0, 1000000)
    return (x - 1) ** 2 + (np.log10(y) + 2) ** 2 + (n / 1e5 - 6) ** 2
)",
      [](const Play::Suggest& suggest, TrialRecord& trial) {
        const double x = suggest("x", FloatDistribution{.low = -5, .high = 10});
        const double y = suggest("y", FloatDistribution{.low = 1e-4, .high = 1, .log = true});
        const double n = suggest("n", IntDistribution{.low = 0, .high = 1000000});
        trial.values = {std::pow(x - 1, 2) + std::pow(std::log10(y) + 2, 2) +
                        std::pow(n / 1e5 - 6, 2)};
      },
      1e-9);
  RecordProperty("equal_trials", equal);
  EXPECT_GE(equal, 60);
}

TEST(TpeLikeOptuna, MultivariateOnEveryKindOfNumber) {
  if (!has_optuna()) GTEST_SKIP() << "python3-optuna 3.1 is not installed";
  const int equal = compare(
      "tpe:preset=optuna-3,multivariate=true", 2,
      std::string(
          "DIRECTIONS, SEED, TRIALS, OPTIONS = ['minimize'], 2, 60, {'multivariate': True}") +
          kNumericObjective,
      numeric, 1e-9);
  RecordProperty("equal_trials", equal);
  EXPECT_GE(equal, 60);
}

TEST(TpeLikeOptuna, MultivariateOnThreeObjectives) {
  if (!has_optuna()) GTEST_SKIP() << "python3-optuna 3.1 is not installed";
  const int equal = compare(
      "tpe:preset=optuna-3,multivariate=true,startup=40", 4, R"(
DIRECTIONS, SEED, TRIALS, OPTIONS = ["minimize", "maximize", "minimize"], 4, 80, {"multivariate": True, "n_startup_trials": 40}
def objective(trial):
    a, b, c = choice(trial, "a", 7), choice(trial, "b", 8), choice(trial, "c", 5)
    return mixed(a, b, c) / 10, mixed(c, a, b) + 0.5, mixed(b, c, a) - 300
)",
      [](const Play::Suggest& suggest, TrialRecord& trial) {
        const double a = suggest("a", choices(7));
        const double b = suggest("b", choices(8));
        const double c = suggest("c", choices(5));
        trial.values = {mixed({a, b, c}) / 10, mixed({c, a, b}) + 0.5, mixed({b, c, a}) - 300};
      },
      0, {Direction::Minimize, Direction::Maximize, Direction::Minimize});
  RecordProperty("equal_trials", equal);
  EXPECT_GE(equal, 80);
}

TEST(TpeLikeOptuna, MultivariateWithConstraintsAndPrunedTrials) {
  if (!has_optuna()) GTEST_SKIP() << "python3-optuna 3.1 is not installed";
  const int equal = compare("tpe:preset=optuna-3,multivariate=true,startup=40", 6, R"(
def limits(trial):
    return (trial.user_attrs["a"] - 4, 1 - trial.user_attrs["b"])
DIRECTIONS, SEED, TRIALS = ["minimize"], 6, 80
OPTIONS = {"multivariate": True, "constraints_func": limits, "n_startup_trials": 40}
def objective(trial):
    a, b, c = choice(trial, "a", 7), choice(trial, "b", 8), choice(trial, "c", 5)
    trial.set_user_attr("a", a)
    trial.set_user_attr("b", b)
    if c == 2:
        trial.report(mixed(a, b, c), 3 + a)
        raise optuna.TrialPruned()
    return mixed(a, b, c)
)",
                            [](const Play::Suggest& suggest, TrialRecord& trial) {
                              const double a = suggest("a", choices(7));
                              const double b = suggest("b", choices(8));
                              const double c = suggest("c", choices(5));
                              trial.system_attributes["constraints"] =
                                  fmt::format("[{}, {}]", a - 4, 1 - b);
                              trial.values = {mixed({a, b, c})};
                              if (c != 2) return;
                              trial.state = TrialState::Pruned;
                              trial.intermediate_values[3 + static_cast<int>(a)] = mixed({a, b, c});
                            });
  RecordProperty("equal_trials", equal);
  EXPECT_GE(equal, 80);
}

}  // namespace
}  // namespace lathe::study
