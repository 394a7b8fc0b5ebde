#include "lathe/search/allocation.h"

#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/core/philox.h"
#include "lathe/search/format_choices.h"

namespace lathe::search {
namespace {

// Costs are whole numbers: thousandths of a bit are finer than any scale's share.
constexpr double kUnits = 1000;

// How much damages are changed to find other points: a factor of e^0.7 is usual, about two.
constexpr double kSpread = 0.7;

double bits_of(const compress::LayerBits& layer, bool is_data, const std::string& format) {
  compress::LayerBits changed = layer;
  (is_data ? changed.data : changed.weights) = format;
  return is_data ? static_cast<double>(layer.width) * changed.data_bits()
                 : static_cast<double>(layer.num_weights()) * changed.weight_bits();
}

// Numbers between 0 and 1, a function of the seed.
class UnitNumbers {
 public:
  explicit UnitNumbers(std::uint64_t seed) : seed_(seed) {}
  double next() { return unit_interval(philox({count_++, 0, 0, 0}, seed_)[0]); }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(next()));
    return radius * std::cos(6.283185307179586 * next());
  }

 private:
  std::uint64_t seed_;
  std::uint32_t count_ = 0;
};

}  // namespace

Allocation::Allocation(const SearchSpace& space, const std::vector<std::string>& layers,
                       const PrecisionCosts& costs, const Damage& damage) {
  check(space.precision.has_value(), "a space of formats to allocate");
  for (const compress::LayerBits& layer : costs.layers()) {
    num_weights_ += static_cast<double>(layer.num_weights());
    num_data_ += static_cast<double>(layer.width);
    other_weights_ += bits_of(layer, false, layer.weights);
    other_data_ += bits_of(layer, true, layer.data);
  }
  for (const std::string& name : layers) {
    const compress::LayerBits& layer = costs.layer(name);
    for (const TensorChoices& tensors : space.precision->tensors) {
      const bool is_data = tensors.name == "data";
      (is_data ? other_data_ : other_weights_) -=
          bits_of(layer, is_data, is_data ? layer.data : layer.weights);
      Item item{.name = tensors.name.empty() ? name : name + "." + tensors.name,
                .tensors = &tensors,
                .is_data = is_data};
      for (std::size_t family = 0; family < tensors.families.size(); ++family)
        for (const auto& [format, variables] : each_format(tensors.families[family]))
          item.options.push_back({.family = family,
                                  .variables = variables,
                                  .cost = std::llround(kUnits * bits_of(layer, is_data, format)),
                                  .damage = damage(name, tensors, format)});
      items_.push_back(std::move(item));
    }
  }
}

std::optional<Allocation::Point> Allocation::solve(const BitBudget& budget,
                                                   const std::function<double(double)>& changed,
                                                   double share) const {
  Point point;
  for (const bool is_data : {false, true}) {
    std::vector<const Item*> chosen;
    std::vector<compress::BudgetItem> problem;
    for (const Item& item : items_) {
      if (item.is_data != is_data) continue;
      chosen.push_back(&item);
      compress::BudgetItem& options = problem.emplace_back();
      for (const Option& option : item.options)
        options.push_back({.cost = option.cost, .damage = changed(option.damage)});
    }
    if (problem.empty()) continue;
    const compress::BudgetChoice least = compress::cheapest(problem);
    const std::optional<double> limit = is_data ? budget.data : budget.weights;
    // Without a limit what is cheapest of the least damage is taken.
    std::int64_t most = std::int64_t{1} << 60;
    if (limit) {
      const double elements = is_data ? num_data_ : num_weights_;
      const double others = is_data ? other_data_ : other_weights_;
      // Rounding must not carry a point over the limit, nor leave out the cheapest at its own bits.
      const auto slack = static_cast<std::int64_t>(problem.size());
      const std::int64_t all =
          static_cast<std::int64_t>(std::floor(kUnits * (*limit * elements - others))) - slack;
      const std::int64_t left = all - least.cost;
      if (left < -2 * slack) return std::nullopt;
      most = least.cost + static_cast<std::int64_t>(
                              share * static_cast<double>(std::max<std::int64_t>(left, 0)));
    }
    const auto choice = compress::least_damage(problem, most);
    if (!choice) return std::nullopt;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const Item& item = *chosen[i];
      const Option& option = item.options[choice->options[i]];
      const FormatChoices& family = item.tensors->families[option.family];
      if (item.tensors->families.size() > 1) point.emplace_back(item.name, family.name);
      for (const auto& [variable, value] : option.variables)
        if (family.variables.at(variable).size() > 1)
          point.emplace_back(fmt::format("{}.{}.{}", item.name, family.name, variable), value);
    }
  }
  return point;
}

std::optional<Allocation::Point> Allocation::best(const BitBudget& budget) const {
  return solve(
      budget, [](double damage) { return damage; }, 1);
}

std::optional<Allocation::Point> Allocation::sample(const BitBudget& budget,
                                                    std::uint64_t seed) const {
  UnitNumbers random(seed);
  // Most of a budget is worth using.
  const double share = std::sqrt(random.next());
  return solve(
      budget, [&](double damage) { return damage * std::exp(kSpread * random.normal()); }, share);
}

BitBudget Allocation::extreme(bool is_largest) const {
  double weights = kUnits * other_weights_, data = kUnits * other_data_;
  for (const Item& item : items_) {
    const auto [least, most] = std::ranges::minmax_element(item.options, {}, &Option::cost);
    (item.is_data ? data : weights) += static_cast<double>((is_largest ? most : least)->cost);
  }
  return {.weights = weights / kUnits / num_weights_, .data = data / kUnits / num_data_};
}

}  // namespace lathe::search
