#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lathe::study {

/// A value as the user sees it: nothing, a truth value, a whole number, a number or a text.
using Choice = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

/// The choice as JSON text: `null`, `true`, `8`, `0.5`, `"gelu"`.
std::string to_json(const Choice& choice);
Choice parse_choice(std::string_view json);
/// Equal as Python sees it: `true`, `1` and `1.0` are, and so are two NaN.
bool is_same(const Choice& a, const Choice& b);

/// Numbers from `low` to `high`; with a step, low, low + step and so on up to `high`.
struct FloatDistribution {
  double low = 0;
  double high = 1;
  bool log = false;
  std::optional<double> step = {};
  bool operator==(const FloatDistribution&) const = default;
};

/// Whole numbers from `low` to `high` in steps.
struct IntDistribution {
  std::int64_t low = 0;
  std::int64_t high = 1;
  bool log = false;
  std::int64_t step = 1;
  bool operator==(const IntDistribution&) const = default;
};

/// One of a list; the order has no meaning.
struct CategoricalDistribution {
  std::vector<Choice> choices;
  bool operator==(const CategoricalDistribution&) const = default;
};

/// What values a parameter may take. Inside a study a value is always one double, its *internal*
/// form: the number itself, or the index of the choice.
using Distribution = std::variant<FloatDistribution, IntDistribution, CategoricalDistribution>;

/// Distributions repeat in every trial of a study, long lists of choices included, so trials share
/// them; nobody changes one.
using DistributionPtr = std::shared_ptr<const Distribution>;

/// The distribution with `high` lowered to the last value that the step reaches; fails on an empty
/// or contradictory one, naming `parameter`.
Distribution validated(Distribution distribution, std::string_view parameter);

/// The distribution for messages: `float from 0 to 1 in steps of 0.25`.
std::string describe(const Distribution& distribution);
/// Whether there is only one value to choose.
bool is_single(const Distribution& distribution);
/// The number of values, or nothing when they are not countable.
std::optional<std::int64_t> num_values(const Distribution& distribution);
/// Whether the internal value is one that the distribution can give.
bool contains(const Distribution& distribution, double internal);
/// The internal value as the user sees it, and back; the latter fails on a value of another kind or
/// outside the range, naming `parameter`.
Choice to_external(const Distribution& distribution, double internal);
double to_internal(const Distribution& distribution, const Choice& value,
                   std::string_view parameter);
/// Fails unless one study may hold both for one parameter: the same kind, the same `log`, the same
/// choices. (Ranges may differ, as Optuna allows.)
void require_compatible(const Distribution& known, const Distribution& asked,
                        std::string_view parameter);

/// Optuna's JSON for a distribution, and back. Reads the names of old versions too.
std::string to_json(const Distribution& distribution);
Distribution parse_distribution(std::string_view json);

}  // namespace lathe::study
