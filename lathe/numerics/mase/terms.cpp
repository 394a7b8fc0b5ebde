// Twins of MASE's binary and ternary quantizers with scales.
#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/kernels/kernels.h"
#include "lathe/numerics/mase/quantizers.h"
#include "lathe/numerics/mase/simulated_format.h"

namespace lathe::numerics {

namespace {

SimulatedSpec row_spec(std::string family, std::string text, int bits, double maximum) {
  SimulatedSpec spec;
  FormatFacts& facts = spec.facts;
  facts.family = std::move(family);
  facts.text = std::move(text);
  facts.element_bits = bits;
  facts.maximum = maximum;
  facts.smallest_step = 1;
  facts.granularity = Granularity::Row;
  facts.scale_source = ScaleSource::Local;
  facts.scale_bits = 32;
  return spec;
}

// The mean of the magnitudes above a limit; NaN where there is none, as in MASE. The kernels' order
// of additions is part of the definition, so any path may take it.
float mean_magnitude(const Kernels& path, const float* x, std::int64_t count, float above) {
  const MagnitudeSum sum = path.numbers_above(x, count, above);
  return static_cast<float>(sum.sum / static_cast<double>(sum.count));
}
float mean_magnitude(const SimulatedBlock& block, float above) {
  return mean_magnitude(kernels(Isa::Plain), block.x, block.columns, above);
}

// Calls `body` with the kernels and the run of each row.
template <typename Body>
std::function<void(const Kernels&, const BlockArgs&)> by_rows(Body body) {
  return [body](const Kernels& path, const BlockArgs& args) {
    for (std::int64_t at = 0; at < args.rows * args.columns; at += args.columns)
      body(path,
           RunArgs{
               .x = args.x + at, .y = args.y + at, .count = args.columns, .streams = args.streams});
  };
}

std::shared_ptr<const NumberFormat> parse_binary_scaled(std::string_view text) {
  FormatArguments(text).finish();
  SimulatedSpec spec = row_spec("mase.binary_scaled", "mase.binary_scaled", 1, 1);
  spec.facts.minimum = 0;
  spec.kind = SimulatedSpec::Kind::Positive;
  spec.quantize = [](const SimulatedBlock& block) {
    const float alpha = mean_magnitude(block, -1);
    for (std::int64_t c = 0; c < block.columns; ++c) {
      const float x = block.x[c];
      block.y[c] = std::isnan(x) ? x : x > 0 ? alpha : 0 * alpha;
    }
  };
  spec.quantize_fast = by_rows([](const Kernels& path, const RunArgs& row) {
    const float alpha = mean_magnitude(path, row.x, row.count, -1);
    path.mase_run({.kind = MaseTable::Kind::Positive, .low = 0 * alpha, .high = alpha}, row);
  });
  return make_simulated_format(std::move(spec));
}

std::shared_ptr<const NumberFormat> parse_binary_residual(std::string_view text) {
  FormatArguments arguments(text);
  int levels = 2;
  if (const std::optional<std::string> number = arguments.next_text())
    levels = static_cast<int>(parse_integer(*number, "levels", 1, 3));
  arguments.finish();
  SimulatedSpec spec =
      row_spec("mase.binary_residual", fmt::format("mase.binary_residual:{}", levels), levels, 1);
  spec.facts.minimum = -1;
  // Its means are constants, as they are before training.
  spec.facts.scale_source = ScaleSource::None;
  spec.facts.scale_bits = 0;
  MaseTable table{.kind = MaseTable::Kind::Residual, .num_means = levels};
  const auto total = static_cast<float>(levels * (levels + 1) / 2);
  for (int i = 0; i < levels; ++i) table.means[i] = static_cast<float>(levels - i) / total;
  use_run(spec, table);
  spec.quantize = [table](const SimulatedBlock& block) {
    const MaseResidual quantizer{table.means, table.num_means};
    for (std::int64_t c = 0; c < block.columns; ++c) block.y[c] = quantizer(block.x[c]);
  };
  return make_simulated_format(std::move(spec));
}

std::shared_ptr<const NumberFormat> parse_ternary(std::string_view text) {
  FormatArguments arguments(text);
  const bool is_scaled = arguments.flag("scaled");
  arguments.finish();
  SimulatedSpec spec =
      row_spec("mase.ternary", is_scaled ? "mase.ternary:scaled" : "mase.ternary", 2, 1);
  spec.facts.minimum = -1;
  if (!is_scaled) spec.facts.scale_bits = 0;
  spec.kind = is_scaled ? SimulatedSpec::Kind::ScaledTernary : SimulatedSpec::Kind::Ternary;
  spec.quantize = [is_scaled](const SimulatedBlock& block) {
    const float delta = kMaseTernaryThreshold * mean_magnitude(block, -1);
    const float alpha = is_scaled ? mean_magnitude(block, delta) : 1;
    for (std::int64_t c = 0; c < block.columns; ++c) {
      const float x = block.x[c];
      block.y[c] = std::isnan(x) ? x : x > delta ? alpha : x < -delta ? -alpha : 0;
    }
  };
  spec.quantize_fast = by_rows([is_scaled](const Kernels& path, const RunArgs& row) {
    const float delta = kMaseTernaryThreshold * mean_magnitude(path, row.x, row.count, -1);
    path.ternary(delta, is_scaled ? mean_magnitude(path, row.x, row.count, delta) : 1, row);
  });
  return make_simulated_format(std::move(spec));
}

const Register registrations[] = {
    Register{FormatFamily{.name = "mase.binary_scaled",
                          .summary = "MASE's binary quantizer that is not bipolar, value for value",
                          .syntax = "mase.binary_scaled",
                          .parse = parse_binary_scaled,
                          .examples = {"mase.binary_scaled"}}},
    Register{
        FormatFamily{.name = "mase.binary_residual",
                     .summary = "MASE's residual signs with their first means, value for value",
                     .syntax = "mase.binary_residual[:LEVELS]",
                     .parse = parse_binary_residual,
                     .examples = {"mase.binary_residual:2"}}},
    Register{FormatFamily{.name = "mase.ternary",
                          .summary = "MASE's ternary quantizer, value for value",
                          .syntax = "mase.ternary[:scaled]",
                          .parse = parse_ternary,
                          .examples = {"mase.ternary", "mase.ternary:scaled"}}},
};

}  // namespace
}  // namespace lathe::numerics
