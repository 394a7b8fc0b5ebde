#include "lathe/train/entities.h"

#include <algorithm>

namespace lathe::train {
namespace {

double share(std::int64_t part, std::int64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace

bool spell_entities(std::span<const std::string> labels) {
  return std::ranges::all_of(labels, [](const std::string& label) {
    return label == "O" || (label.size() > 2 && label[1] == '-' &&
                            std::string_view("BIES").find(label[0]) != std::string_view::npos);
  });
}

std::vector<Entity> find_entities(std::span<const std::string> labels) {
  std::vector<Entity> found;
  bool is_inside = false;  // whether the last of `found` may go on
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string& label = labels[i];
    if (label == "O") {
      is_inside = false;
      continue;
    }
    const char place = label[0];
    const std::string type = label.substr(2);
    const auto position = static_cast<std::int64_t>(i);
    const bool goes_on = is_inside && place != 'B' && place != 'S' && found.back().type == type;
    if (goes_on)
      found.back().last = position;
    else
      found.push_back({type, position, position});
    is_inside = place != 'E' && place != 'S';
  }
  return found;
}

double EntityCount::precision() const {
  return share(right, predicted);
}
double EntityCount::recall() const {
  return share(right, expected);
}
double EntityCount::f1() const {
  return share(2 * right, expected + predicted);
}

}  // namespace lathe::train
