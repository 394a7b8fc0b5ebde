#include "lathe/compress/budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/compress/choice_problem.h"
#include "lathe/core/error.h"

namespace lathe::compress {
namespace {

// Sums of costs, and of damages as whole numbers, stay below this.
constexpr std::int64_t kMost = std::int64_t{1} << 60;

// Damages as whole multiples of a power of two: as fine as their sum's place in 60 bits allows,
// which is finer than what a double of that size tells apart.
class DamageScale {
 public:
  explicit DamageScale(std::span<const BudgetItem> items) {
    double total = 0;
    for (const BudgetItem& item : items) {
      double most = 0;
      for (const BudgetOption& option : item) {
        check(std::isfinite(option.damage), "a damage that is finite");
        most = std::max(most, std::abs(option.damage));
      }
      total += most;
    }
    // A sum of at most 2^59 leaves room for the rounding of each damage.
    int exponent = 0;
    if (total > 0) std::frexp(total, &exponent);
    shift_ = 59 - exponent;
  }
  std::int64_t nearest(double damage) const { return std::llround(std::ldexp(damage, shift_)); }
  // The largest bound that is not above `damage`.
  std::int64_t bound(double damage) const {
    const double scaled = std::floor(std::ldexp(damage, shift_));
    return static_cast<std::int64_t>(
        std::clamp(scaled, -static_cast<double>(kMost), static_cast<double>(kMost)));
  }

 private:
  int shift_ = 0;
};

void check_items(std::span<const BudgetItem> items) {
  std::int64_t total = 0;
  for (const BudgetItem& item : items) {
    check(!item.empty(), "an item with options");
    std::int64_t most = 0;
    for (const BudgetOption& option : item) {
      check(option.cost >= 0 && option.cost <= kMost, "a cost from 0 to 2^60");
      most = std::max(most, option.cost);
    }
    total += most;
    check(total <= kMost, "costs of at most 2^60 in all");
  }
}

BudgetChoice choice_of(std::span<const BudgetItem> items, std::vector<std::size_t> options) {
  BudgetChoice result{.options = std::move(options)};
  for (std::size_t i = 0; i < items.size(); ++i) {
    const BudgetOption& taken = items[i][result.options[i]];
    result.cost += taken.cost;
    result.damage += taken.damage;
  }
  return result;
}

using Classes = std::vector<std::vector<ClassOption>>;

// What is weighed becomes what is valued.
Classes swapped(Classes classes) {
  for (std::vector<ClassOption>& options : classes)
    for (ClassOption& option : options) std::swap(option.weight, option.value);
  return classes;
}

// Options weighed by their cost and valued by their damage.
Classes weigh_costs(std::span<const BudgetItem> items, const DamageScale& scale) {
  Classes classes;
  for (const BudgetItem& item : items) {
    classes.emplace_back();
    for (std::size_t i = 0; i < item.size(); ++i)
      classes.back().push_back({item[i].cost, scale.nearest(item[i].damage), i});
  }
  return classes;
}

// The least value first; among the choices that reach it, the least weight.
std::optional<BudgetChoice> solve(std::span<const BudgetItem> items, const Classes& classes,
                                  std::int64_t capacity) {
  const std::optional<std::vector<std::size_t>> first = solve_choices(classes, capacity);
  if (!first) return std::nullopt;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) value += classes[i][(*first)[i]].value;
  std::optional<std::vector<std::size_t>> lightest = solve_choices(swapped(classes), value);
  if (!lightest) return std::nullopt;  // never: the first choice reaches it
  return choice_of(items, std::move(*lightest));
}

}  // namespace

std::optional<BudgetChoice> least_damage(std::span<const BudgetItem> items, std::int64_t budget) {
  check_items(items);
  return solve(items, weigh_costs(items, DamageScale(items)), budget);
}

std::optional<BudgetChoice> least_cost(std::span<const BudgetItem> items, double damage) {
  check_items(items);
  const DamageScale scale(items);
  return solve(items, swapped(weigh_costs(items, scale)), scale.bound(damage));
}

BudgetChoice cheapest(std::span<const BudgetItem> items) {
  check_items(items);
  std::vector<std::size_t> options;
  for (const BudgetItem& item : items) {
    const auto found = std::min_element(item.begin(), item.end(), [](const auto& a, const auto& b) {
      return a.cost != b.cost ? a.cost < b.cost : a.damage < b.damage;
    });
    options.push_back(static_cast<std::size_t>(found - item.begin()));
  }
  return choice_of(items, std::move(options));
}

}  // namespace lathe::compress
