// Signs: plus or minus 1, plus or minus the mean magnitude of the row (XNOR-Net), or a sum of such
// terms where each takes the sign and the mean magnitude of what those before it left over. With
// scales that are handed in, training may move them like those of integers, away from the mean.
#include <array>
#include <limits>

#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/scaled_format.h"
#include "lathe/numerics/term_format.h"

namespace lathe::numerics {

namespace {

using Levels = std::array<float, LevelCodec::kLevels>;
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr Levels filled(float first, float second) {
  Levels levels{};
  levels.fill(kNone);
  levels[0] = first;
  levels[1] = second;
  return levels;
}
constexpr Levels kSigns = filled(-1, 1), kThresholds = filled(0, kNone);

std::shared_ptr<const NumberFormat> make_learned(bool is_tensor) {
  ScaledSpec spec;
  spec.codec = LevelCodec{kSigns.data(), kThresholds.data()};
  spec.level_bits = 1;
  spec.rule = ScaleRule::Given;
  spec.facts.family = "binary";
  spec.facts.text = is_tensor ? "binary:learned,tensor" : "binary:learned";
  spec.facts.scale_source = ScaleSource::Given;
  spec.facts.scale_bits = 32;
  spec.facts.granularity = is_tensor ? Granularity::Tensor : Granularity::Row;
  return make_scaled_format(std::move(spec));
}

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  TermSpec spec;
  spec.facts.family = "binary";
  spec.facts.text = "binary";
  const bool is_tensor = arguments.flag("tensor");
  const std::optional<std::string> kind = arguments.next_text();
  if (!kind) {
    spec.is_unit = true;
    if (is_tensor) fail("tensor needs a kind with scales: plain binary has none");
  } else if (*kind == "scaled") {
    spec.facts.text += ":scaled";
  } else if (*kind == "learned") {
    arguments.finish();
    return make_learned(is_tensor);
  } else if (*kind == "residual") {
    spec.terms = static_cast<int>(arguments.integer("number of terms", 1, 8));
    spec.facts.text += fmt::format(":residual,{}", spec.terms);
  } else {
    throw unknown_name("kind of binary", *kind, {"scaled", "learned", "residual"});
  }
  spec.facts.granularity = spec.is_unit || is_tensor ? Granularity::Tensor : Granularity::Row;
  if (is_tensor) spec.facts.text += ",tensor";
  arguments.finish();
  return make_term_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "binary",
    .summary = "signs, alone or times the mean magnitude or a learned scale of their row",
    .syntax = "binary[:scaled|learned|residual,TERMS][,tensor]",
    .parse = parse,
    .examples = {"binary", "binary:scaled", "binary:learned", "binary:residual,2",
                 "binary:residual,3", "binary:scaled,tensor", "binary:learned,tensor"},
}};

}  // namespace
}  // namespace lathe::numerics
