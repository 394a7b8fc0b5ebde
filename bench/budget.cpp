// How long the budget solver takes: 200 items of 30 options each, seven budgets of five random
// instances of every kind, both ways round. Prints the median and the longest time of each kind.
//
//     bench_budget

#include "lathe/compress/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <random>

namespace {

using lathe::compress::BudgetItem;
using Random = std::mt19937;

constexpr int kItems = 200, kOptions = 30;

struct Kind {
  const char* name;
  std::function<BudgetItem(Random&)> item;
};

// Bits of a layer: sizes and sensitivities differ by orders of magnitude, a bit quarters the noise.
BudgetItem layer(Random& random) {
  std::lognormal_distribution<double> size(12, 1.5), sensitivity(-4, 2), noise(0, 0.1);
  const auto elements = static_cast<std::int64_t>(size(random));
  const double scale = sensitivity(random);
  BudgetItem item;
  for (int bits = 1; bits <= kOptions; ++bits)
    item.push_back({elements * bits / 8 + 64, scale * std::pow(4.0, -bits) * noise(random)});
  return item;
}

template <typename Damage>
std::function<BudgetItem(Random&)> by_cost(Damage damage) {
  return [damage](Random& random) {
    BudgetItem item;
    for (int option = 0; option < kOptions; ++option) {
      const auto cost = static_cast<std::int64_t>(random() % 1'000'000);
      item.push_back(
          {cost, damage(static_cast<double>(cost), static_cast<double>(random() % 1000))});
    }
    return item;
  };
}

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(const Kind& kind) {
  std::vector<double> times;
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    Random random(seed);
    std::vector<BudgetItem> items;
    std::int64_t dearest = 0;
    for (int i = 0; i < kItems; ++i) {
      items.push_back(kind.item(random));
      dearest += std::max_element(items.back().begin(), items.back().end(), [](auto& a, auto& b) {
                   return a.cost < b.cost;
                 })->cost;
    }
    const std::int64_t least = lathe::compress::cheapest(items).cost;
    for (const double share : {0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8}) {
      const auto budget =
          least + static_cast<std::int64_t>(share * static_cast<double>(dearest - least));
      double damage = 0;
      times.push_back(
          seconds([&] { damage = lathe::compress::least_damage(items, budget)->damage; }));
      times.push_back(seconds([&] { lathe::compress::least_cost(items, damage); }));
    }
  }
  std::sort(times.begin(), times.end());
  fmt::print("{:<34} median {:7.2f} ms, longest {:7.2f} ms\n", kind.name,
             1e3 * times[times.size() / 2], 1e3 * times.back());
}

}  // namespace

int main() {
  fmt::print("{} items of {} options\n", kItems, kOptions);
  measure({"bits of layers", layer});
  measure({"damage unrelated to cost", by_cost([](double, double noise) { return noise; })});
  measure({"damage nearly cost's complement",
           by_cost([](double cost, double noise) { return 1e6 - cost + noise; })});
  measure({"damage cost's complement (hardest)",
           by_cost([](double cost, double) { return 1e6 - cost; })});
}
