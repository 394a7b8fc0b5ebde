#include "lathe/search/family_points.h"

#include <algorithm>

#include "lathe/core/philox.h"
#include "lathe/search/format_choices.h"

namespace lathe::search {
namespace {

// What a layer's tensors may be: formats of the family, and float where there is one.
struct Choices {
  std::string parameter;
  std::vector<std::pair<const FormatChoices*, ChosenFormat>> formats;
  std::size_t num_own = 0;  // the first ones are the family's
};

bool is_float(const FormatChoices& family) {
  return family.formats == std::vector<std::string>{"float"};
}

std::vector<Choices> choices_of(const CandidateSpace& space, const std::string& name) {
  std::vector<Choices> result;
  for (const std::string& layer : space.layers())
    for (const TensorChoices& tensors : space.space().precision->tensors) {
      Choices choices{.parameter = space.precision_name(layer, tensors), .formats = {}};
      for (const bool own : {true, false})
        for (const FormatChoices& family : tensors.families) {
          if (own ? family.name != name : family.name == name || !is_float(family)) continue;
          for (const ChosenFormat& format : each_format(family))
            choices.formats.emplace_back(&family, format);
          if (own) choices.num_own = choices.formats.size();
        }
      // Tensors that the family does not name have all of theirs.
      if (choices.num_own == 0)
        for (const FormatChoices& family : tensors.families)
          for (const ChosenFormat& format : each_format(family))
            choices.formats.emplace_back(&family, format);
      result.push_back(std::move(choices));
    }
  return result;
}

void add_choice(const CandidateSpace& space, const Choices& choices, std::size_t index,
                std::vector<std::pair<std::string, study::Choice>>& point) {
  const auto& [family, format] = choices.formats[index % choices.formats.size()];
  const auto exists = [&](const std::string& name) {
    return std::ranges::find(space.parameters(), name, &study::SpaceParameter::name) !=
           space.parameters().end();
  };
  if (exists(choices.parameter)) point.emplace_back(choices.parameter, family->name);
  for (const auto& [variable, value] : format.variables)
    if (const std::string name = fmt::format("{}.{}.{}", choices.parameter, family->name, variable);
        exists(name))
      point.emplace_back(name, value);
}

}  // namespace

std::vector<FamilyPoints> family_points(const CandidateSpace& space, int count,
                                        std::uint64_t seed) {
  std::vector<FamilyPoints> result;
  if (!space.space().precision) return result;
  for (const FormatChoices& family : space.space().precision->tensors.front().families) {
    FamilyPoints points{.family = family.name};
    const std::vector<Choices> layers = choices_of(space, family.name);
    const std::size_t num_formats = family.formats.size();
    std::uint32_t drawn = 0;
    // A float model is one point, however often it is drawn.
    const std::size_t most = is_float(family) ? 1 : static_cast<std::size_t>(count);
    while (points.points.size() < most) {
      auto& point = points.points.emplace_back();
      for (const Choices& choices : layers) {
        const double share = unit_interval(philox({drawn++, 1, 0, 0}, seed)[0]);
        const std::size_t index =
            points.points.size() <= num_formats
                ? points.points.size() - 1
                : static_cast<std::size_t>(share * static_cast<double>(choices.formats.size()));
        add_choice(space, choices, index, point);
      }
    }
    result.push_back(std::move(points));
  }
  return result;
}

}  // namespace lathe::search
