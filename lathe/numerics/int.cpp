// Scaled integers: code times a float scale that calibration or training gives, or that each row
// (each group of a row) makes of its own values.
//
// Scales that are given can be bfloat16 numbers (`short`): half the bytes beside the codes of small
// groups, and a scale is at most 2^-7 larger than it would have to be.
//
// Symmetric codes leave out -2^(width-1): then minus a number is one too, a weight and its negative
// are treated alike, and products of two codes fit one bit less.
#include "lathe/core/number_format.h"
#include "lathe/numerics/calibration_range.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::numerics {

namespace {

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 2, 16));
  const bool is_channel = arguments.flag("channel");
  const auto group = arguments.integer_option("group", 1, std::int64_t{1} << 20);
  const bool is_asymmetric = arguments.flag("asymmetric");
  const bool is_dynamic = arguments.flag("dynamic");
  const bool is_short = arguments.flag("short");
  arguments.finish();
  if (is_channel && group) fail("channel and group={} exclude each other", *group);
  if (is_short && (is_asymmetric || is_dynamic))
    fail("short and {} exclude each other", is_dynamic ? "dynamic" : "asymmetric");

  ScaledSpec spec;
  FormatFacts& facts = spec.facts;
  facts.family = "int";
  facts.text = fmt::format("int:{}", width);
  if (is_channel && !is_dynamic) facts.text += ",channel";
  if (group) facts.text += fmt::format(",group={}", *group);
  if (is_asymmetric) facts.text += ",asymmetric";
  if (is_dynamic) facts.text += ",dynamic";
  if (is_short) facts.text += ",short";

  const std::int64_t half = std::int64_t{1} << (width - 1);
  const std::int64_t high = is_asymmetric ? 2 * half - 1 : half - 1;
  spec.codec = IntegerCodec{width, is_asymmetric ? 0 : -high, high, 0};
  facts.scale_source = is_dynamic ? ScaleSource::Local : ScaleSource::Given;
  // A dynamic scale for more than a row would make a result depend on its neighbours in a batch.
  facts.granularity = group                      ? Granularity::Block
                      : is_channel || is_dynamic ? Granularity::Row
                                                 : Granularity::Tensor;
  facts.block_columns = group.value_or(0);
  facts.has_zero_point = is_asymmetric;
  facts.scale_bits =
      (is_short ? kShortScaleBits : 32) + (is_asymmetric ? (width <= 8 ? 8 : 16) : 0);
  spec.rule = !is_dynamic     ? ScaleRule::Given
              : is_asymmetric ? ScaleRule::Range
                              : ScaleRule::LargestMagnitude;
  spec.divisor = static_cast<float>(high);
  return make_scaled_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "int",
    .summary = "scaled integers, with or without a zero point",
    .syntax = "int:WIDTH[,channel|group=N][,asymmetric][,dynamic][,short]",
    .parse = parse,
    .examples = {"int:8", "int:4,channel", "int:4,group=32", "int:8,asymmetric",
                 "int:4,group=64,asymmetric", "int:8,dynamic", "int:8,asymmetric,dynamic",
                 "int:4,group=32,dynamic", "int:4,group=32,short"},
}};

}  // namespace
}  // namespace lathe::numerics
