// What a linear layer gains from the zeros of its weight: each sparse kernel against our own dense
// one, and whether the planner's rule picks the fastest.
//
//   bench_sparse [plain|avx2|avx512] [--costs | --element | --2:4 | ...]
//
// Weights are pruned at random to 50, 70, 90 and 95 % by each granularity; N:M has the sparsity
// that it has. Times are a thread's own, contenders alternate, and a figure is the median of the
// rounds. After each granularity comes the sparsity from which on a sparse kernel wins, between the
// levels by a line; at the end, where the rule's choice took more than a tenth longer than the
// best. A granularity given as an option is measured alone.
//
// With --costs it measures and prints the constants of the rule, lathe/engine/cpu/sparse_costs.cpp.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/race.h"
#include "lathe/core/error.h"
#include "lathe/engine/cpu/linear_weights.h"

namespace {

using namespace lathe;
using namespace lathe::engine;
using bench::random_floats;

using Kernel = LinearKernel;
constexpr std::array<Kernel, 4> kKernels{Kernel::Dense, Kernel::Reduced, Kernel::Groups,
                                         Kernel::Elements};

struct Shape {
  std::int64_t n, k;
};
constexpr std::array<Shape, 4> kShapes{{{128, 128}, {512, 128}, {768, 768}, {3072, 768}}};
constexpr std::array<std::int64_t, 4> kTokens{1, 64, 512, 4096};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The median seconds of a call of each contender.
std::vector<double> race(const std::vector<std::function<void()>>& contenders, int rounds) {
  std::vector<double> medians;
  for (const std::vector<double>& times : bench::race(contenders, rounds, 0.001))
    medians.push_back(median(times));
  return medians;
}

/// What is pruned as one: blocks of rows x columns, or all but `kept` of `of` columns.
struct Granularity {
  std::string name;
  std::int64_t rows = 1, columns = 1;  ///< 0: all
  std::int64_t kept = 0, of = 0;
  std::vector<double> levels = {0.5, 0.7, 0.9, 0.95};
};
const std::vector<Granularity> kGranularities = {
    {"element"},
    {.name = "2:4", .kept = 2, .of = 4, .levels = {0.5}},
    {.name = "4:8", .kept = 4, .of = 8, .levels = {0.5}},
    {.name = "1:4", .kept = 1, .of = 4, .levels = {0.75}},
    {.name = "1x16", .rows = 1, .columns = 16},
    {.name = "4x4", .rows = 4, .columns = 4},
    {.name = "row", .rows = 1, .columns = 0},
};

/// A weight of which exactly the share `level` of its granules is zero, to within one granule.
std::vector<float> pruned(const Shape& shape, const Granularity& granularity, double level) {
  std::vector<float> weight = random_floats(shape.n * shape.k);
  std::mt19937 generator(11);
  const auto at = [&](std::int64_t row, std::int64_t column) -> float& {
    return weight[static_cast<std::size_t>(row * shape.k + column)];
  };
  if (granularity.of > 0) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(granularity.of));
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t row = 0; row < shape.n; ++row)
      for (std::int64_t first = 0; first < shape.k; first += granularity.of) {
        std::shuffle(order.begin(), order.end(), generator);
        for (std::size_t i = static_cast<std::size_t>(granularity.kept); i < order.size(); ++i)
          at(row, first + order[i]) = 0;
      }
    return weight;
  }
  const std::int64_t columns = granularity.columns == 0 ? shape.k : granularity.columns;
  const std::int64_t across = shape.k / columns;
  std::vector<std::int64_t> granules(static_cast<std::size_t>(shape.n / granularity.rows * across));
  std::iota(granules.begin(), granules.end(), 0);
  std::shuffle(granules.begin(), granules.end(), generator);
  granules.resize(
      static_cast<std::size_t>(std::llround(level * static_cast<double>(granules.size()))));
  for (const std::int64_t granule : granules)
    for (std::int64_t r = 0; r < granularity.rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        at(granule / across * granularity.rows + r, granule % across * columns + c) = 0;
  return weight;
}

/// The seconds of a product of `tokens` rows by each of some kernels.
std::vector<double> measure(const Kernels& table, const Shape& shape,
                            const std::vector<float>& weight, std::int64_t tokens,
                            std::span<const Kernel> kernels_to_race, int rounds) {
  const std::vector<float> x = random_floats(tokens * shape.k), bias = random_floats(shape.n);
  std::vector<float> y(static_cast<std::size_t>(tokens * shape.n));
  std::vector<LinearWeights> packed;
  std::int64_t scratch_floats = 16;
  for (const Kernel kernel : kernels_to_race) {
    packed.emplace_back(shape.n, shape.k).pack_for(kernel, table, weight);
    scratch_floats = std::max(scratch_floats, packed.back().scratch_floats(table, tokens));
  }
  const AlignedBuffer scratch(scratch_floats * static_cast<std::int64_t>(sizeof(float)));
  std::vector<std::function<void()>> contenders;
  for (const LinearWeights& weights : packed)
    contenders.emplace_back([&] {
      weights.multiply(table, {.rows = tokens,
                               .x = x.data(),
                               .bias = bias.data(),
                               .y = y.data(),
                               .scratch = scratch.floats()});
    });
  return race(contenders, rounds);
}

/// The kernels that differ from the dense one for this weight.
std::vector<std::size_t> contenders_for(const std::vector<float>& weight, const Shape& shape) {
  const KeptWeights kept = count_kept(weight, shape.n, shape.k);
  std::vector<std::size_t> indices{2, 3};
  if (std::ssize(kept.rows) < shape.n || std::ssize(kept.columns) < shape.k)
    indices.insert(indices.begin(), 1);
  return indices;
}

struct Case {
  std::string granularity;
  double level;
  Shape shape;
  std::int64_t tokens;
  std::size_t chosen, best;  ///< of kKernels
  double speed_of_choice, speed_of_best;
};

// The level where the best sparse kernel's relative times cross 1, by the line between neighbours,
// or through the first two where it wins at both.
std::string crossing(const std::vector<double>& levels, const std::vector<double>& times) {
  if (times.back() >= 1) return fmt::format("> {:.0f}", 100 * levels.back());
  if (times.size() < 2) return fmt::format("< {:.0f}", 100 * levels.back());
  std::size_t i = 0;
  while (i + 2 < times.size() && times[i + 1] >= 1) ++i;
  const double slope = (times[i + 1] - times[i]) / (levels[i + 1] - levels[i]);
  return fmt::format("{:.0f}", std::max(0.0, 100 * (levels[i] + (1 - times[i]) / slope)));
}

void bench_granularity(const Kernels& table, const Granularity& granularity,
                       std::vector<Case>& cases) {
  fmt::print("\n{}: times as fast as dense (kernel), by tokens\n{:>10} {:>8}", granularity.name,
             "weight", "zeros");
  for (const std::int64_t tokens : kTokens) fmt::print(" {:>15}", tokens);
  fmt::print("\n");
  std::string crossings;
  for (const Shape& shape : kShapes) {
    const std::string shape_text = fmt::format("{}x{}", shape.n, shape.k);
    std::vector<std::vector<double>> times(kTokens.size());
    for (const double level : granularity.levels) {
      const std::vector<float> weight = pruned(shape, granularity, level);
      const std::vector<std::size_t> sparse = contenders_for(weight, shape);
      LinearWeights planned(shape.n, shape.k);
      planned.pack(table, weight);
      fmt::print("{:>10} {:>6.0f} %", shape_text, 100 * level);
      for (std::size_t t = 0; t < kTokens.size(); ++t) {
        const std::vector<double> seconds =
            measure(table, shape, weight, kTokens[t], kKernels, kTokens[t] > 512 ? 3 : 5);
        const std::size_t best = *std::min_element(
            sparse.begin(), sparse.end(),
            [&](std::size_t a, std::size_t b) { return seconds[a] < seconds[b]; });
        const auto chosen = static_cast<std::size_t>(planned.kernel(kTokens[t]));
        times[t].push_back(seconds[best] / seconds[0]);
        cases.push_back({granularity.name, level, shape, kTokens[t], chosen,
                         seconds[best] < seconds[0] ? best : 0, seconds[0] / seconds[chosen],
                         std::max(1.0, seconds[0] / seconds[best])});
        fmt::print(" {:>5.2f} {:>9}", seconds[0] / seconds[best], name(kKernels[best]));
        std::fflush(stdout);
      }
      fmt::print("\n");
    }
    crossings += fmt::format("{:>10}           ", shape_text);
    for (const std::vector<double>& of_tokens : times)
      crossings += fmt::format(" {:>15}", crossing(granularity.levels, of_tokens));
    crossings += "\n";
  }
  fmt::print("{}: wins from this sparsity on, per cent\n{}", granularity.name, crossings);
}

void judge(const std::vector<Case>& cases) {
  constexpr double kTolerated = 1.1;
  int worse = 0, slower = 0;
  double lost = 0;
  fmt::print("\nwhere the rule's choice takes more than {:.1f} times the best kernel's time:\n",
             kTolerated);
  for (const Case& one : cases) {
    const double regret = one.speed_of_best / one.speed_of_choice;
    lost += std::log(regret);
    if (one.speed_of_choice < 1 / kTolerated) ++slower;
    if (regret <= kTolerated) continue;
    ++worse;
    fmt::print("  {:<8}{:.0f} %  {}x{}, {} tokens: {} ({:.2f}x), the best is {} ({:.2f}x)\n",
               one.granularity, 100 * one.level, one.shape.n, one.shape.k, one.tokens,
               name(kKernels[one.chosen]), one.speed_of_choice, name(kKernels[one.best]),
               one.speed_of_best);
  }
  fmt::print(
      "{} of {}; slower than dense by as much in {}; the rule's times are {:.3f} of the best ones "
      "(geometric mean)\n",
      worse, cases.size(), slower, std::exp(lost / static_cast<double>(cases.size())));
}

/// What a sum of products with these numbers comes closest to the times, by relative errors: the
/// normal equations by elimination. No cost is negative.
std::array<double, 3> fit(std::vector<std::array<double, 3>> numbers,
                          const std::vector<double>& times) {
  std::array<std::array<double, 4>, 3> rows{};
  for (std::size_t i = 0; i < times.size(); ++i)
    for (std::size_t r = 0; r < 3; ++r) {
      const double weight = numbers[i][r] / (times[i] * times[i]);
      for (std::size_t c = 0; c < 3; ++c) rows[r][c] += weight * numbers[i][c];
      rows[r][3] += weight * times[i];
    }
  for (std::size_t r = 0; r < 3; ++r)
    if (rows[r][r] == 0) rows[r][r] = 1;  // left out
  for (std::size_t pivot = 0; pivot < 3; ++pivot)
    for (std::size_t r = 0; r < 3; ++r) {
      if (r == pivot) continue;
      const double factor = rows[r][pivot] / rows[pivot][pivot];
      for (std::size_t c = 0; c < 4; ++c) rows[r][c] -= factor * rows[pivot][c];
    }
  for (std::size_t r = 0; r < 3; ++r)
    if (rows[r][3] / rows[r][r] < 0) {
      for (std::array<double, 3>& line : numbers) line[r] = 0;
      return fit(std::move(numbers), times);
    }
  return {rows[0][3] / rows[0][0], rows[1][3] / rows[1][1], rows[2][3] / rows[2][2]};
}

void print_costs(const Kernels& table) {
  const SparseCosts& costs = sparse_costs(*parse_isa(table.isa));
  constexpr int kRounds = 7;
  const Granularity &element = kGranularities.front(), &row = kGranularities.back();
  const auto product = [](const Shape& shape) { return static_cast<double>(shape.n * shape.k); };
  // The dense time of a row among many, for each shape.
  std::vector<double> unit;
  constexpr std::int64_t kMany = 84;  // whole tiles
  constexpr std::array<Kernel, 1> kDense{Kernel::Dense};
  for (const Shape& shape : kShapes)
    unit.push_back(measure(table, shape, pruned(shape, element, 0), kMany, kDense, kRounds)[0] /
                   kMany / product(shape));
  fmt::print("    .few = {{");
  for (const std::int64_t rows : {1, 2, 3}) {
    std::vector<double> worth;
    for (std::size_t s = 0; s < kShapes.size(); ++s)
      worth.push_back(
          measure(table, kShapes[s], pruned(kShapes[s], element, 0), rows, kDense, kRounds)[0] /
          unit[s] / product(kShapes[s]));
    fmt::print("{}{:.2f}", rows == 1 ? "" : ", ",
               std::accumulate(worth.begin(), worth.end(), 0.0) / 4);
  }
  fmt::print("}},\n");
  for (const Kernel kernel : {Kernel::Elements, Kernel::Groups}) {
    const std::int64_t group = kernel == Kernel::Groups ? kSparseGroup : 1;
    const Granularity granularity{.name = "column of a group", .rows = group, .columns = 1};
    fmt::print("    .{} = {{{{", name(kernel));
    for (int vectors = 1; vectors <= most_vectors(costs, kernel); ++vectors) {
      const std::int64_t lanes = vectors * costs.width;
      std::vector<std::array<double, 3>> numbers;
      std::vector<double> times;
      for (std::size_t s = 0; s < kShapes.size(); ++s)
        for (const double level : {0.5, 0.7, 0.9, 0.95}) {
          const Shape& shape = kShapes[s];
          const std::vector<float> weight = pruned(shape, granularity, level);
          const KeptWeights kept = count_kept(weight, shape.n, shape.k);
          const std::int64_t groups = shape.n / group * (shape.k / kSparseChunk);
          numbers.push_back({static_cast<double>(group > 1 ? group * kept.groups : kept.elements),
                             static_cast<double>(groups), static_cast<double>(shape.n + shape.k)});
          const std::array<Kernel, 1> one{kernel};
          times.push_back(measure(table, shape, weight, lanes, one, kRounds)[0] / unit[s] /
                          static_cast<double>(lanes));
        }
      const std::array<double, 3> lane = fit(numbers, times);
      fmt::print("{}{{{:.2f}, {:.1f}, {:.1f}}}", vectors == 1 ? "" : ", ", lane[0], lane[1],
                 lane[2]);
      std::fflush(stdout);
    }
    fmt::print("}}}},\n");
  }
  std::vector<double> moved;
  for (std::size_t s = 0; s < kShapes.size(); ++s)
    for (const double level : {0.5, 0.9}) {
      const Shape& shape = kShapes[s];
      const std::vector<float> weight = pruned(shape, row, level);
      const KeptWeights kept = count_kept(weight, shape.n, shape.k);
      constexpr std::array<Kernel, 1> kReduced{Kernel::Reduced};
      const double seconds = measure(table, shape, weight, kMany, kReduced, kRounds)[0];
      const double dense =
          expected_time(costs, Kernel::Dense, {.n = std::ssize(kept.rows), .k = shape.k}, kMany);
      moved.push_back((seconds / unit[s] - dense) /
                      static_cast<double>((kMany + 2) * std::ssize(kept.rows)));
    }
  fmt::print("    .moved = {:.0f},\n", median(moved));
}

int run(int argc, char** argv) {
  Isa isa = best_isa();
  bool only_costs = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--costs") {
      only_costs = true;
    } else if (const std::optional<Isa> named = parse_isa(word)) {
      isa = *named;
    } else if (std::any_of(kGranularities.begin(), kGranularities.end(),
                           [&](const Granularity& one) { return "--" + one.name == word; })) {
      only = word.substr(2);
    } else {
      fail("usage: bench_sparse [plain|avx2|avx512] [--costs | --element | --2:4 | ...], not {}",
           word);
    }
  }
  const Kernels& table = kernels(isa);
  fmt::print("{}\n", table.isa);
  if (only_costs) {
    print_costs(table);
    return 0;
  }
  std::vector<Case> cases;
  for (const Granularity& granularity : kGranularities)
    if (only.empty() || only == granularity.name) bench_granularity(table, granularity, cases);
  judge(cases);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
