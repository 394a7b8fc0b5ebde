#include "lathe/search/search_space.h"

#include <algorithm>

#include "lathe/compress/pruning/method.h"
#include "lathe/compress/pruning/pruning_rules.h"
#include "lathe/core/error.h"
#include "lathe/search/builder_sizes.h"
#include "lathe/search/model_choices.h"

namespace lathe::search {
namespace {

void check_list(std::string_view name, const std::vector<std::string>& values,
                const std::vector<std::string>& known) {
  for (const std::string& value : values)
    if (std::ranges::find(known, value) == known.end()) throw unknown_name(name, value, known);
}

template <typename T>
void check_distinct(std::string_view name, const std::vector<T>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::ranges::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i),
                          values[i]) != values.begin() + static_cast<std::ptrdiff_t>(i))
      fail("{}: {} stands there twice", name, values[i]);
}

// What only encoders of the family bert choose.
void check_no_encoder_sizes(const ArchitectureSpace& space) {
  const auto refuse = [&](std::string_view name, bool is_given) {
    if (is_given)
      fail("{}: is chosen by models of the family bert alone: expected a place for it in {}", name,
           space.model);
  };
  refuse("layers", !space.layers.empty());
  refuse("heads", !space.heads.empty());
  refuse("hidden", !space.hidden.empty());
  refuse("intermediate", !space.intermediate.empty());
  refuse("activation", !space.activation.empty());
  refuse("norm", !space.norm.empty());
  refuse("projections", !space.projections.empty());
}

void check_architecture(const ArchitectureSpace& space) {
  for (const auto& [name, values] : space.variables) {
    if (space.model.find("{" + name + "}") == std::string::npos)
      fail("the model {} has no place for {{{}}}", space.model, name);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (std::ranges::count(values, values[i]) > 1)
        fail("{}: {} stands there twice", name, study::to_json(values[i]));
  }
  const models::NamedModel builder = named_builder(builder_name(space));
  if (!has_encoder_sizes(space)) {
    check_no_encoder_sizes(space);
    models::find_task(*builder.family, "classify");
    return;
  }
  for (const auto& [name, values] :
       {std::pair("layers", &space.layers), std::pair("heads", &space.heads),
        std::pair("hidden", &space.hidden), std::pair("intermediate", &space.intermediate)}) {
    check_distinct(name, *values);
    for (const std::int64_t value : *values)
      if (value < 1) fail("{}: {} is too small: expected 1 or more", name, value);
  }
  check_list("activation", space.activation,
             {"gelu", "gelu_new", "quick_gelu", "relu", "silu", "tanh"});
  check_list("norm", space.norm, {"post", "pre"});
  check_list("projections", space.projections, {"identity", "linear"});
  for (const auto& [name, values] :
       {std::pair("activation", &space.activation), std::pair("norm", &space.norm),
        std::pair("projections", &space.projections)})
    check_distinct(name, *values);
  const std::vector<std::int64_t> heads =
      values_or_default(space, space.heads, "num_attention_heads");
  const std::vector<std::int64_t> hidden = values_or_default(space, space.hidden, "hidden_size");
  const bool fits = std::ranges::any_of(heads, [&](std::int64_t count) {
    return std::ranges::any_of(hidden, [&](std::int64_t size) { return size % count == 0; });
  });
  if (!fits)
    fail("no point is possible: none of heads {} divides any of hidden {}", fmt::join(heads, ", "),
         fmt::join(hidden, ", "));
}

void check_pruning(const PruningSpace& space) {
  if (space.sparsity.empty()) fail("sparsity: is missing: expected a share or a list of them");
  const std::vector<std::string> none{""};
  for (const std::string& method : space.method.empty() ? none : space.method)
    for (const std::string& granularity : space.granularity.empty() ? none : space.granularity)
      for (const double sparsity : space.sparsity) {
        compress::PruningSettings settings{.sparsity = sparsity};
        if (!method.empty()) settings.method = method;
        if (!granularity.empty()) settings.granularity = compress::parse_granularity(granularity);
        compress::check_settings(settings);
        if (!method.empty() &&
            compress::find_pruning_method(method).evidence == compress::PruningEvidence::Training)
          fail("method {}: prunes while a model trains; a trial prunes at once", method);
      }
  check_distinct("sparsity", space.sparsity);
  check_distinct("method", space.method);
  check_distinct("granularity", space.granularity);
}

}  // namespace

void check_space(const SearchSpace& space) {
  with_place("architecture", [&] { check_architecture(space.architecture); });
  if (space.pruning) with_place("pruning", [&] { check_pruning(*space.pruning); });
  for (const auto& [name, distribution] : space.recipe) {
    if (std::ranges::find(recipe_options(), name) == recipe_options().end())
      throw unknown_name("option of training", name, recipe_options()).at("recipe");
    study::validated(distribution, name);
  }
}

const std::vector<std::string>& recipe_options() {
  static const std::vector<std::string> names{
      "accumulate", "batch-size",     "batch-tokens", "clip",        "cycles",    "dropout",
      "epochs",     kEpochsAfter,     "lr",           "momentum",    "optimizer", kOwnWeight,
      "schedule",   "teacher-weight", "warmup",       "weight-decay"};
  return names;
}

}  // namespace lathe::search
