#include "lathe/numerics/mase/simulated_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/numerics/kernels/kernels.h"

namespace lathe::numerics {

namespace {

class SimulatedFormat final : public NumberFormat {
 public:
  explicit SimulatedFormat(SimulatedSpec spec) : spec_(std::move(spec)) {
    FormatFacts& facts = spec_.facts;
    facts.is_row_local = facts.block_rows == 1;
    facts.reads_twice =
        facts.scale_source == ScaleSource::Local && facts.granularity == Granularity::Row;
  }
  const FormatFacts& facts() const override { return spec_.facts; }
  const SimulatedSpec& spec() const { return spec_; }
  std::int64_t code_bytes(std::int64_t columns) const override { return 4 * columns; }
  std::int64_t scale_bytes(std::int64_t) const override { return 0; }

  void quantize(const QuantizeArgs& args) const override {
    if (args.rows == 0 || args.columns == 0) return;
    if (!spec_.quantize_fast) return quantize_by_definition(args);
    const std::int64_t bytes = args.rows * args.columns * static_cast<std::int64_t>(sizeof(float));
    spec_.quantize_fast(kernels(args.isa), {.x = args.x,
                                            .y = args.y,
                                            .rows = args.rows,
                                            .columns = args.columns,
                                            .block_rows = spec_.facts.block_rows,
                                            .block = block_width(args),
                                            .streams = args.x != args.y && should_stream(bytes)});
  }

  EncodedMatrix encode(const QuantizeArgs& args) const override {
    EncodedMatrix encoded{args.rows, args.columns, {}, {}};
    const auto count = static_cast<std::size_t>(args.rows * args.columns);
    std::vector<float> values(count);
    QuantizeArgs written = args;
    written.y = values.data();
    quantize_by_definition(written);
    encoded.codes.resize(count * sizeof(float));
    if (count > 0) std::memcpy(encoded.codes.data(), values.data(), encoded.codes.size());
    return encoded;
  }
  void decode(const EncodedMatrix& encoded, const float*, const float*, float* y) const override {
    if (!encoded.codes.empty()) std::memcpy(y, encoded.codes.data(), encoded.codes.size());
  }

 private:
  std::int64_t block_width(const QuantizeArgs& args) const {
    return spec_.facts.block_columns > 0 ? spec_.facts.block_columns : args.columns;
  }
  void quantize_by_definition(const QuantizeArgs& args) const {
    if (args.columns == 0) return;
    const std::int64_t width = block_width(args);
    for (std::int64_t r = 0; r < args.rows; r += spec_.facts.block_rows) {
      const std::int64_t height = std::min(spec_.facts.block_rows, args.rows - r);
      std::vector<float> largest = largest_magnitudes(args, r, height, width);
      for (std::int64_t c = 0; c < args.columns; c += width) {
        const std::int64_t at = r * args.columns + c;
        spec_.quantize({args.x + at, args.y + at, height, std::min(width, args.columns - c),
                        args.columns,
                        largest.empty() ? 1 : largest[static_cast<std::size_t>(c / width)]});
      }
    }
  }

  std::vector<float> largest_magnitudes(const QuantizeArgs& args, std::int64_t row,
                                        std::int64_t height, std::int64_t width) const {
    std::vector<float> largest;
    if (!spec_.needs_largest) return largest;
    float smallest = 0;
    for (std::int64_t c = 0; c < args.columns; c += width) {
      float magnitude = 0;
      for (std::int64_t r = row; r < row + height; ++r)
        for (std::int64_t i = c; i < std::min(c + width, args.columns); ++i)
          magnitude = std::max(magnitude, std::fabs(args.x[r * args.columns + i]));
      largest.push_back(magnitude);
      if (magnitude > 0 && (smallest == 0 || magnitude < smallest)) smallest = magnitude;
    }
    // MASE looks for the stand-in in the whole tensor, which would tie rows to each other.
    for (float& magnitude : largest)
      if (magnitude == 0) magnitude = smallest > 0 ? smallest : 1;
    return largest;
  }

  SimulatedSpec spec_;
};

}  // namespace

void use_run(SimulatedSpec& spec, const MaseTable& table) {
  spec.table = table;
  spec.quantize_fast = [table](const Kernels& path, const BlockArgs& args) {
    path.mase_run(
        table,
        {.x = args.x, .y = args.y, .count = args.rows * args.columns, .streams = args.streams});
  };
}
void use_blocks(SimulatedSpec& spec, const MaseTable& table) {
  spec.table = table;
  spec.quantize_fast = [table](const Kernels& path, const BlockArgs& args) {
    path.mase_blocks(table, args);
  };
}

std::shared_ptr<const NumberFormat> make_simulated_format(SimulatedSpec spec) {
  return std::make_shared<SimulatedFormat>(std::move(spec));
}

const SimulatedSpec* find_simulated_spec(const NumberFormat& format) {
  const auto* const found = dynamic_cast<const SimulatedFormat*>(&format);
  return found == nullptr ? nullptr : &found->spec();
}

}  // namespace lathe::numerics
