#include "lathe/search/candidate_space.h"

#include <algorithm>
#include <array>
#include <functional>

#include "lathe/core/error.h"
#include "lathe/search/builder_sizes.h"
#include "lathe/search/format_choices.h"
#include "lathe/search/model_choices.h"
#include "lathe/study/space.h"
#include "lathe/study/space_point.h"

namespace lathe::search {
namespace {

using study::Choice;

// The square projections of a layer; the pooler's is one more.
constexpr std::array kProjections{"query", "key", "value", "output"};

// A list of an architecture, the parameter's name and the key that it sets.
struct Setting {
  std::string name, key;
  std::vector<Choice> values;
};

template <typename T>
std::vector<Choice> to_choices(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

std::vector<Setting> settings_of(const ArchitectureSpace& space) {
  return {{"layers", "num_hidden_layers", to_choices(space.layers)},
          {"heads", "num_attention_heads", to_choices(space.heads)},
          {"hidden", "hidden_size", to_choices(space.hidden)},
          {"intermediate", "intermediate_size", to_choices(space.intermediate)},
          {"activation", "hidden_act", to_choices(space.activation)},
          {"norm", "lathe_norm_place", to_choices(space.norm)}};
}

Attribute to_attribute(const Choice& choice) {
  if (const auto* number = std::get_if<std::int64_t>(&choice)) return *number;
  return std::get<std::string>(choice);
}

study::DistributionPtr categorical(std::vector<Choice> choices) {
  return std::make_shared<const study::Distribution>(
      study::CategoricalDistribution{std::move(choices)});
}

std::string projection_name(std::int64_t layer, const char* projection) {
  return fmt::format("layer.{}.{}", layer, projection);
}

// A parameter that exists only where the model has so many layers.
study::SpaceParameter of_layer(const std::vector<std::int64_t>& layers, std::int64_t layer,
                               std::string name, study::DistributionPtr distribution) {
  study::SpaceParameter parameter{.name = std::move(name), .distribution = std::move(distribution)};
  if (std::ranges::min(layers) > layer) return parameter;
  parameter.parent = "layers";
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (layers[i] > layer) parameter.parent_values.push_back(static_cast<double>(i));
  return parameter;
}

void add_architecture(const ArchitectureSpace& space, study::Space& to) {
  for (const auto& [name, values] : space.variables)
    if (values.size() > 1) to.push_back({.name = name, .distribution = categorical(values)});
  if (!has_encoder_sizes(space)) return;
  for (Setting& setting : settings_of(space))
    if (setting.values.size() > 1)
      to.push_back({.name = setting.name, .distribution = categorical(std::move(setting.values))});
  if (space.projections.size() < 2) return;
  const std::vector<std::int64_t> layers =
      values_or_default(space, space.layers, "num_hidden_layers");
  const study::DistributionPtr kinds = categorical(to_choices(space.projections));
  to.push_back({.name = "pooler", .distribution = kinds});
  for (std::int64_t layer = 0; layer < std::ranges::max(layers); ++layer)
    for (const char* const projection : kProjections)
      to.push_back(of_layer(layers, layer, projection_name(layer, projection), kinds));
}

// The user's value of a parameter, or nothing where the point does not have it.
std::optional<Choice> value_of(const study::Assignment& point, std::string_view name) {
  const study::Parameter* parameter = study::find_parameter(point, name);
  if (parameter == nullptr) return std::nullopt;
  return study::to_external(*parameter->distribution, parameter->value);
}

// The same, or the only value that there is; nothing where that is not decided yet.
std::optional<std::int64_t> size_at(const ArchitectureSpace& space, const study::Assignment& point,
                                    const std::string& name,
                                    const std::vector<std::int64_t>& values,
                                    const std::string& key) {
  if (const auto value = value_of(point, name)) return std::get<std::int64_t>(*value);
  if (values.size() > 1) return std::nullopt;
  return values_or_default(space, values, key).front();
}

// The text with the variables' values at a point; nothing where one is not decided yet.
std::optional<std::string> filled_at(
    const std::string& text, const std::map<std::string, std::vector<Choice>>& variables,
    const std::function<std::string(const std::string&)>& parameter_of,
    const study::Assignment& point) {
  VariableValues values;
  for (const auto& [variable, choices] : variables) {
    std::optional<Choice> value = value_of(point, parameter_of(variable));
    if (!value && choices.size() > 1) return std::nullopt;
    values[variable] = value ? *value : choices.front();
  }
  return fill_variables(text, values);
}

std::optional<std::string> model_at(const ArchitectureSpace& space,
                                    const study::Assignment& point) {
  return filled_at(
      space.model, space.variables, [](const std::string& variable) { return variable; }, point);
}

Attributes architecture_at(const ArchitectureSpace& space, const study::Assignment& point) {
  if (has_variables(space)) return named_builder(*model_at(space, point)).config;
  Attributes result;
  if (!has_encoder_sizes(space)) return result;
  for (const Setting& setting : settings_of(space)) {
    if (setting.values.empty()) continue;
    result[setting.key] =
        to_attribute(value_of(point, setting.name).value_or(setting.values.front()));
  }
  const std::int64_t layers = *size_at(space, point, "layers", space.layers, "num_hidden_layers");
  const auto is_identity = [&](const std::string& name) {
    const auto chosen = value_of(point, name);
    if (chosen) return *chosen == Choice("identity");
    return space.projections == std::vector<std::string>{"identity"};
  };
  std::vector<std::string> identities;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (const char* const projection : kProjections)
      if (is_identity(projection_name(layer, projection)))
        identities.push_back(fmt::format("{}.{}", layer, projection));
  if (is_identity("pooler")) identities.emplace_back("pooler");
  if (!identities.empty())
    result["lathe_identity_projections"] = fmt::format("{}", fmt::join(identities, ","));
  return result;
}

// Whether what is decided of an architecture can be built.
bool is_possible_architecture(const ArchitectureSpace& space,
                              const std::vector<std::string>& models,
                              const study::Assignment& point) {
  if (!has_encoder_sizes(space)) {
    const std::optional<std::string> model = model_at(space, point);
    return !model || std::ranges::find(models, *model) != models.end();
  }
  const auto heads = size_at(space, point, "heads", space.heads, "num_attention_heads");
  const auto hidden = size_at(space, point, "hidden", space.hidden, "hidden_size");
  return !heads || !hidden || *hidden % *heads == 0;
}

// Where all layers choose alike, what stands for them is their pattern, and has no name.
bool are_alike(const std::vector<std::string>& layers, const std::string& pattern) {
  return layers == std::vector<std::string>{pattern};
}
std::string precision_name(const SearchSpace& space, const std::vector<std::string>& layers,
                           const std::string& layer, const TensorChoices& tensors) {
  if (are_alike(layers, space.precision->layers))
    return tensors.name.empty() ? "formats" : tensors.name;
  return tensors.name.empty() ? layer : layer + "." + tensors.name;
}
std::string pruning_name(const SearchSpace& space, const std::vector<std::string>& layers,
                         const std::string& layer, const char* what) {
  return are_alike(layers, space.pruning->layers) ? what : fmt::format("{}.{}", layer, what);
}

std::string variable_name(const std::string& parameter, const FormatChoices& family,
                          const std::string& variable) {
  return fmt::format("{}.{}.{}", parameter, family.name, variable);
}

void add_precision(const SearchSpace& space, const std::vector<std::string>& layers,
                   study::Space& to) {
  for (const std::string& layer : layers)
    for (const TensorChoices& tensors : space.precision->tensors) {
      const std::string name = precision_name(space, layers, layer, tensors);
      std::vector<Choice> families;
      for (const FormatChoices& family : tensors.families) families.emplace_back(family.name);
      if (families.size() > 1) to.push_back({.name = name, .distribution = categorical(families)});
      for (std::size_t i = 0; i < tensors.families.size(); ++i)
        for (const auto& [variable, values] : tensors.families[i].variables) {
          if (values.size() < 2) continue;
          study::SpaceParameter parameter{
              .name = variable_name(name, tensors.families[i], variable),
              .distribution = categorical(values)};
          if (families.size() > 1) {
            parameter.parent = name;
            parameter.parent_values = {static_cast<double>(i)};
          }
          to.push_back(std::move(parameter));
        }
    }
}

// Method and granularity are those of a layer that is pruned at all.
void add_pruning(const SearchSpace& space, const std::vector<std::string>& layers,
                 study::Space& to) {
  const PruningSpace& pruning = *space.pruning;
  for (const std::string& layer : layers) {
    const std::string sparsity = pruning_name(space, layers, layer, "sparsity");
    if (pruning.sparsity.size() > 1)
      to.push_back({.name = sparsity, .distribution = categorical(to_choices(pruning.sparsity))});
    for (const auto& [what, values] :
         {std::pair("method", &pruning.method), std::pair("granularity", &pruning.granularity)}) {
      if (values->size() < 2) continue;
      study::SpaceParameter parameter{.name = pruning_name(space, layers, layer, what),
                                      .distribution = categorical(to_choices(*values))};
      if (pruning.sparsity.size() > 1) {
        parameter.parent = sparsity;
        for (std::size_t i = 0; i < pruning.sparsity.size(); ++i)
          if (pruning.sparsity[i] > 0) parameter.parent_values.push_back(static_cast<double>(i));
      }
      to.push_back(std::move(parameter));
    }
  }
}

LayerPruning pruning_at(const SearchSpace& space, const std::vector<std::string>& layers,
                        const std::string& layer, const study::Assignment& point) {
  const auto chosen = [&](const char* what) {
    return value_of(point, pruning_name(space, layers, layer, what));
  };
  const PruningSpace& pruning = *space.pruning;
  LayerPruning result{.sparsity = pruning.sparsity.front()};
  if (const auto sparsity = chosen("sparsity")) result.sparsity = std::get<double>(*sparsity);
  if (result.sparsity == 0) return result;
  const auto text = [&](const char* what, const std::vector<std::string>& values) {
    if (const auto value = chosen(what)) return std::get<std::string>(*value);
    return values.empty() ? std::string() : values.front();
  };
  result.method = text("method", pruning.method);
  result.granularity = text("granularity", pruning.granularity);
  return result;
}

// Null where it is not decided yet.
const FormatChoices* family_at(const TensorChoices& tensors, const std::string& parameter,
                               const study::Assignment& point) {
  if (tensors.families.size() == 1) return &tensors.families.front();
  const study::Parameter* chosen = study::find_parameter(point, parameter);
  if (chosen == nullptr) return nullptr;
  return &tensors.families[static_cast<std::size_t>(chosen->value)];
}

// The format of a layer's tensors; nothing where a variable is not decided yet.
std::optional<std::string> format_at(const FormatChoices& family, const std::string& parameter,
                                     const study::Assignment& point) {
  return filled_at(
      family.format, family.variables,
      [&](const std::string& variable) { return variable_name(parameter, family, variable); },
      point);
}

// The value of a distribution that has one alone, in internal form.
double only_value(const study::Distribution& distribution) {
  if (const auto* real = std::get_if<study::FloatDistribution>(&distribution)) return real->low;
  if (const auto* whole = std::get_if<study::IntDistribution>(&distribution))
    return static_cast<double>(whole->low);
  return 0;
}

}  // namespace

std::string candidate_text(const Candidate& candidate) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : candidate.architecture)
    parts.push_back(fmt::format("{} {}", key, to_text(value)));
  std::map<std::string, int> counts;
  for (const auto& [layer, formats] : candidate.formats)
    for (const auto& [role, format] : formats)
      if (role == compress::TensorRole::Weights) ++counts[format];
  for (const auto& [format, count] : counts) parts.push_back(fmt::format("{} {}", count, format));
  for (const auto& [key, value] : candidate.recipe.items())
    parts.push_back(fmt::format("{} {}", key, value.dump()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

nlohmann::json to_json(const Candidate& candidate) {
  nlohmann::json result{{"architecture", nlohmann::json::object()}, {"recipe", candidate.recipe}};
  for (const auto& [key, value] : candidate.architecture)
    result["architecture"][key] =
        std::visit([](const auto& each) { return nlohmann::json(each); }, value);
  for (const auto& [layer, formats] : candidate.formats)
    for (const auto& [role, format] : formats)
      result["formats"][layer][std::string(compress::name(role))] = format;
  for (const auto& [layer, pruning] : candidate.pruning)
    result["pruning"][layer] = {{"sparsity", pruning.sparsity},
                                {"method", pruning.method},
                                {"granularity", pruning.granularity}};
  return result;
}

CandidateSpace::CandidateSpace(SearchSpace space, std::vector<std::string> layers,
                               std::vector<std::string> pruned)
    : space_(std::move(space)),
      models_(models_of(space_.architecture)),
      layers_(std::move(layers)),
      pruned_(std::move(pruned)) {
  check_space(space_);
  if (space_.precision && layers_.empty()) layers_ = {space_.precision->layers};
  if (space_.pruning && pruned_.empty()) pruned_ = {space_.pruning->layers};
  add_architecture(space_.architecture, parameters_);
  if (space_.precision) add_precision(space_, layers_, parameters_);
  if (space_.pruning) add_pruning(space_, pruned_, parameters_);
  for (const auto& [name, distribution] : space_.recipe)
    if (!study::is_single(distribution))
      parameters_.push_back(
          {.name = name,
           .distribution = std::make_shared<const study::Distribution>(distribution)});
  parameters_ = study::validated(std::move(parameters_));
}

std::string CandidateSpace::precision_name(const std::string& layer,
                                           const TensorChoices& tensors) const {
  return search::precision_name(space_, layers_, layer, tensors);
}

bool CandidateSpace::is_possible(const study::Assignment& point) const {
  if (!is_possible_architecture(space_.architecture, models_, point)) return false;
  if (!space_.precision) return true;
  for (const std::string& layer : layers_)
    for (const TensorChoices& tensors : space_.precision->tensors) {
      const std::string name = precision_name(layer, tensors);
      const FormatChoices* family = family_at(tensors, name, point);
      if (family == nullptr) continue;
      const auto format = format_at(*family, name, point);
      if (format && std::ranges::find(family->formats, *format) == family->formats.end())
        return false;
    }
  return true;
}

std::optional<Candidate> CandidateSpace::find_candidate(const study::Assignment& point) const {
  for (const study::SpaceParameter& each : parameters_)
    if (study::is_present(each, point) && study::find_parameter(point, each.name) == nullptr)
      return std::nullopt;
  Candidate candidate{.architecture = architecture_at(space_.architecture, point)};
  if (space_.precision)
    for (const std::string& layer : layers_)
      for (const TensorChoices& tensors : space_.precision->tensors) {
        const std::string name = precision_name(layer, tensors);
        const std::string format = *format_at(*family_at(tensors, name, point), name, point);
        for (const compress::TensorRole role : tensors.roles)
          candidate.formats[layer][role] = format;
      }
  if (space_.pruning)
    for (const std::string& layer : pruned_)
      candidate.pruning[layer] = pruning_at(space_, pruned_, layer, point);
  for (const auto& [name, distribution] : space_.recipe)
    candidate.recipe[name] = nlohmann::json::parse(
        study::to_json(value_of(point, name)
                           .value_or(study::to_external(distribution, only_value(distribution)))));
  return candidate;
}

Candidate CandidateSpace::candidate(const study::Assignment& point) const {
  std::optional<Candidate> found = find_candidate(point);
  check(found.has_value(), "a point to have every parameter of its space");
  return std::move(*found);
}

std::vector<std::vector<std::pair<std::string, study::Choice>>> CandidateSpace::uniform_points()
    const {
  using Point = std::vector<std::pair<std::string, study::Choice>>;
  if (!space_.precision) return {};
  std::vector<Point> points{Point()};
  for (const TensorChoices& tensors : space_.precision->tensors) {
    std::vector<Point> longer;
    for (const Point& point : points)
      for (const FormatChoices& family : tensors.families)
        for (const ChosenFormat& format : each_format(family)) {
          Point& one = longer.emplace_back(point);
          for (const std::string& layer : layers_) {
            const std::string name = precision_name(layer, tensors);
            if (tensors.families.size() > 1) one.emplace_back(name, family.name);
            for (const auto& [variable, value] : format.variables)
              if (family.variables.at(variable).size() > 1)
                one.emplace_back(variable_name(name, family, variable), value);
          }
        }
    points = std::move(longer);
  }
  return points;
}

std::vector<Candidate> CandidateSpace::uniform_candidates() const {
  if (!space_.precision || space_.precision->uniform.empty()) return {};
  // Everything but formats, which has one value then.
  SearchSpace rest = space_;
  rest.precision.reset();
  const CandidateSpace others(std::move(rest), {}, pruned_);
  if (!others.parameters().empty())
    fail(
        "precision: uniform: {} is left to choose: expected one value, which all that are "
        "compared have",
        others.parameters().front().name);
  std::vector<Candidate> candidates{others.candidate({})};
  for (const TensorChoices& tensors : space_.precision->tensors) {
    const bool is_data = tensors.name == "data";
    std::vector<Candidate> longer;
    for (const Candidate& candidate : candidates)
      for (const FormatChoices& family : is_data ? tensors.families : space_.precision->uniform)
        for (const std::string& format : family.formats) {
          Candidate& one = longer.emplace_back(candidate);
          for (const std::string& layer : layers_)
            for (const compress::TensorRole role : tensors.roles) one.formats[layer][role] = format;
        }
    candidates = std::move(longer);
  }
  return candidates;
}

}  // namespace lathe::search
