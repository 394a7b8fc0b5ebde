#include "lathe/ops/attention_weight_format.h"

#include <cmath>
#include <vector>

namespace lathe::ops {

AttentionWeightFormat::AttentionWeightFormat(std::string_view text) : format_(parse_format(text)) {
  if (format_ == nullptr)
    fail("weight_format \"float\" rounds nothing: expected a narrower one, or \"\"");
  const FormatFacts& facts = format_->facts();
  if (!facts.is_row_local)
    fail("attention: {} has a scale for several rows, but each query's weights are rounded alone",
         facts.text);
  if (facts.scale_source != ScaleSource::Given) return;
  if (facts.granularity != Granularity::Tensor)
    fail(
        "attention: {} is handed a scale for each row, but weights lie between 0 and 1 in all of "
        "them: use a format with one scale, a dynamic one, or one with blocks of its own",
        facts.text);
  scale_ = numerics::scale_for_range(*format_, 0, 1);
}

std::optional<AttentionWeightFormat> AttentionWeightFormat::of(const AttributeReader& attributes) {
  const std::string text = attributes.text("weight_format");
  if (text.empty()) return std::nullopt;
  return AttentionWeightFormat(text);
}

QuantizeArgs AttentionWeightFormat::row(const float* weights, std::size_t count) const {
  QuantizeArgs args;
  args.rows = 1;
  args.columns = static_cast<std::int64_t>(count);
  args.x = weights;
  args.scales = &scale_.scale;
  args.zeros = &scale_.zero;
  return args;
}

void AttentionWeightFormat::round(std::span<float> weights, const std::uint8_t* keep,
                                  Isa isa) const {
  std::size_t num_kept = 0;
  if (keep != nullptr)
    for (std::size_t j = 0; j < weights.size(); ++j) num_kept += keep[j] != 0 ? 1 : 0;
  const bool is_whole = num_kept == 0 || num_kept == weights.size();
  // The kept weights move together, are rounded, and move back from the end: no room is needed.
  if (!is_whole) {
    std::size_t to = 0;
    for (std::size_t j = 0; to < num_kept; ++j)
      if (keep[j] != 0) weights[to++] = weights[j];
  }
  QuantizeArgs args = row(weights.data(), is_whole ? weights.size() : num_kept);
  args.y = weights.data();
  args.isa = isa;
  format_->quantize(args);
  if (is_whole) return;
  std::size_t from = num_kept;
  for (std::size_t j = weights.size(); j-- > 0;) weights[j] = keep[j] != 0 ? weights[--from] : 0.0f;
}

void AttentionWeightFormat::round_by_definition(std::span<double> weights,
                                                std::span<const std::uint8_t> keep) const {
  std::vector<std::size_t> places;
  for (std::size_t j = 0; j < weights.size(); ++j)
    if (keep[j] != 0) places.push_back(j);
  if (places.empty())
    for (std::size_t j = 0; j < weights.size(); ++j) places.push_back(j);
  std::vector<float> kept(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) kept[i] = static_cast<float>(weights[places[i]]);
  const QuantizeArgs args = row(kept.data(), kept.size());
  std::vector<float> rounded(kept.size());
  format_->decode(format_->encode(args), args.scales, args.zeros, rounded.data());
  // NaN stays, as in `quantize`.
  for (std::size_t i = 0; i < places.size(); ++i)
    if (!std::isnan(kept[i])) weights[places[i]] = static_cast<double>(rounded[i]);
}

}  // namespace lathe::ops
