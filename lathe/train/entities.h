#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Entities that labels of words spell, such as B-PER I-PER O, and how well they are found.
namespace lathe::train {

/// Words `first` to `last` of a sentence, both included.
struct Entity {
  std::string type;
  std::int64_t first = 0, last = 0;
  auto operator<=>(const Entity&) const = default;
};

/// Whether labels spell entities: each is O, or B, I, E or S with a type behind a dash.
bool spell_entities(std::span<const std::string> labels);

/// The entities of a sentence as seqeval counts them unless told to be strict: B and S begin one, E
/// and S end one, and what continues none of its type begins one, too.
std::vector<Entity> find_entities(std::span<const std::string> labels);

/// How many entities there are, are said to be and are both, with type and ends.
struct EntityCount {
  std::int64_t expected = 0, predicted = 0, right = 0;

  double precision() const;  ///< 0 where none are predicted
  double recall() const;
  double f1() const;
};

}  // namespace lathe::train
