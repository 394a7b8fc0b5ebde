#include "lathe/engine/cpu/code_weight.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "lathe/engine/cpu/split_table.h"

namespace lathe::engine {
namespace {

// Writes value(row, block) of a weight's rows, the columns of its panels, line by line.
template <typename T, typename Value>
void write_panels(AlignedBuffer& to, std::int64_t n, std::int64_t panel, std::int64_t lines,
                  Value value) {
  const std::int64_t panels = (n + panel - 1) / panel;
  to.reserve(panels * panel * lines * static_cast<std::int64_t>(sizeof(T)));
  T* next = reinterpret_cast<T*>(to.data());
  for (std::int64_t first = 0; first < n; first += panel)
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t j = first; j < first + panel; ++j) *next++ = j < n ? value(j, line) : T{0};
}

bool are_nibbles(const numerics::RowCodes& weight) {
  return std::all_of(weight.numbers.begin(), weight.numbers.end(),
                     [](std::int8_t number) { return number >= -8 && number <= 7; });
}

// The numbers of panels, `step` rows side by side for each column, and a byte for one or two of
// them. A piece of all columns stays near while it is turned around.
void write_numbers(const numerics::RowCodes& weight, std::int64_t panel, bool has_nibbles,
                   std::int64_t step, AlignedBuffer& to) {
  constexpr std::int64_t kPiece = 64;
  const std::int64_t n = weight.rows, k = weight.columns, lines = has_nibbles ? k / 2 : k;
  const std::int64_t bytes = (n + panel - 1) / panel * panel * lines;
  const int offset = step > 1 ? 128 : 0;  // of numbers that have bytes of their own
  to.reserve(bytes);
  auto* const numbers = reinterpret_cast<std::int8_t*>(to.data());
  const std::int64_t whole = n / panel * panel * lines;
  if (n % panel != 0) std::fill(numbers + whole, numbers + bytes, std::int8_t{0});
  for (std::int64_t first = 0; first < n; first += panel)
    for (std::int64_t from = 0; from < k; from += kPiece)
      for (std::int64_t j = first; j < std::min(n, first + panel); ++j) {
        const std::int8_t* const row = weight.numbers.data() + j * k;
        std::int8_t* const column = numbers + first * lines + (j - first) * step;
        const std::int64_t end = std::min(k, from + kPiece);
        // Row p lies in line p / step, in the place p % step of its column.
        if (has_nibbles)
          for (std::int64_t p = from; p < end; p += 2 * step)
            for (std::int64_t i = p; i < p + step; ++i)
              column[p / 2 * panel + (i - p)] =
                  static_cast<std::int8_t>(row[i] + 8 + (row[i + step] + 8) * 16);
        else
          for (std::int64_t p = from; p < end; ++p)
            column[p / step * step * panel + p % step] = static_cast<std::int8_t>(row[p] + offset);
      }
}

// The exponent field of a normal power of two; 0 for any other number.
std::uint8_t power_code(float scale) {
  const auto bits = std::bit_cast<std::uint32_t>(scale);
  const std::uint32_t field = bits >> 23;
  return (bits & 0x7fffff) == 0 && field < 255 ? static_cast<std::uint8_t>(field) : 0;
}

// The codes of all scales; empty where one has none. Numbers that are all 0 are so by any scale: 1
// then stands for theirs, which may be too small for a normal number.
std::vector<std::uint8_t> power_codes(const numerics::RowCodes& weight) {
  constexpr std::uint8_t kOne = 127;
  std::vector<std::uint8_t> codes;
  codes.reserve(weight.scales.size());
  for (std::int64_t j = 0; j < weight.rows; ++j)
    for (std::int64_t b = 0; b < weight.blocks; ++b) {
      const float scale = weight.scales[static_cast<std::size_t>(j * weight.blocks + b)];
      std::uint8_t code = power_code(scale);
      if (code == 0) {
        const std::int8_t* const row = weight.numbers.data() + j * weight.columns;
        const bool is_zero = std::all_of(row + b * weight.width,
                                         row + std::min(weight.columns, (b + 1) * weight.width),
                                         [](std::int8_t number) { return number == 0; });
        if (!is_zero || !std::isfinite(scale)) return {};
        code = kOne;
      }
      codes.push_back(code);
    }
  return codes;
}

}  // namespace

void PanelScales::pack(const numerics::RowCodes& weight, std::int64_t panel, bool may_be_short) {
  blocks_ = weight.blocks;
  const std::vector<std::uint8_t> codes =
      weight.blocks > 1 ? power_codes(weight) : std::vector<std::uint8_t>();
  are_powers_ = !codes.empty();
  largest_power_ = are_powers_ ? *std::max_element(codes.begin(), codes.end()) : std::uint8_t{0};
  const auto at = [&](std::int64_t j, std::int64_t b) {
    return static_cast<std::size_t>(j * weight.blocks + b);
  };
  are_short_ = !are_powers_ && may_be_short &&
               std::all_of(weight.scales.begin(), weight.scales.end(), [](float scale) {
                 return (std::bit_cast<std::uint32_t>(scale) & 0xffff) == 0;
               });
  if (are_short_)
    write_panels<std::uint16_t>(
        memory_, weight.rows, panel, blocks_, [&](std::int64_t j, std::int64_t b) {
          return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(weight.scales[at(j, b)]) >>
                                            16);
        });
  else if (are_powers_)
    write_panels<std::uint8_t>(memory_, weight.rows, panel, blocks_,
                               [&](std::int64_t j, std::int64_t b) { return codes[at(j, b)]; });
  else
    write_panels<float>(memory_, weight.rows, panel, blocks_,
                        [&](std::int64_t j, std::int64_t b) { return weight.scales[at(j, b)]; });
}

const float* PanelScales::floats(std::int64_t column) const {
  return are_powers_ || are_short_ ? nullptr : memory_.floats() + column * blocks_;
}

const std::uint16_t* PanelScales::shorts(std::int64_t column) const {
  return are_short_ ? reinterpret_cast<const std::uint16_t*>(memory_.data()) + column * blocks_
                    : nullptr;
}

const std::uint8_t* PanelScales::powers(std::int64_t column) const {
  return are_powers_ ? reinterpret_cast<const std::uint8_t*>(memory_.data()) + column * blocks_
                     : nullptr;
}

void CodeWeight::pack(const CodeKernels& kernels, const numerics::RowCodes& weight,
                      const CodeCut& cut, bool has_zeros) {
  kernels_ = &kernels;
  cut_ = cut;
  cut_.has_nibbles = (cut.blocks == 1 || cut.width % 8 == 0) && are_nibbles(weight);
  const std::int64_t n = weight.rows, panel = kernels.grain().columns;
  numbers_.reserve(std::max<std::int64_t>(kernels.packed_size(n, cut_), 64));
  kernels.pack(weight.numbers.data(), n, cut_, reinterpret_cast<std::int8_t*>(numbers_.data()));
  scales_.pack(weight, panel);
  if (!has_zeros) return;
  write_panels<std::int32_t>(sums_, n, panel, cut.blocks, [&](std::int64_t j, std::int64_t block) {
    std::int32_t sum = 0;
    for (std::int64_t i = block * cut.width; i < std::min(cut.k, (block + 1) * cut.width); ++i)
      sum += weight.numbers[static_cast<std::size_t>(j * cut.k + i)];
    return sum;
  });
}

void CodeWeight::set_operands(CodeArgs& args, std::int64_t column) const {
  args.cut = cut_;
  args.packed =
      reinterpret_cast<const std::int8_t*>(numbers_.data()) + kernels_->packed_size(column, cut_);
  args.weight_scales = scales_.floats(column);
  args.weight_powers = scales_.powers(column);
  args.sums = sums_.size() == 0
                  ? nullptr
                  : reinterpret_cast<const std::int32_t*>(sums_.data()) + column * cut_.blocks;
}

void WidenedWeight::pack(const CodeKernels& kernels, const numerics::RowCodes& weight) {
  kernels_ = &kernels;
  k_ = weight.columns;
  width_ = weight.width;
  has_nibbles_ = k_ % 2 == 0 && (weight.blocks == 1 || width_ % 2 == 0) && are_nibbles(weight);
  const std::int64_t grain = kernels.widened_step * (has_nibbles_ ? 2 : 1);
  const bool fits = k_ % grain == 0 && (weight.blocks == 1 || width_ % grain == 0);
  scales_.pack(weight, kernels.grain().columns, true);
  step_ = fits ? kernels.widened_step : 1;
  if (panel() != kernels.grain().columns) scales_.pack(weight, panel(), true);
  write_numbers(weight, panel(), has_nibbles_, step_, numbers_);
}

bool WidenedWeight::suits_split() const {
  constexpr int kLargestNumber = 128, kOne = 127;
  const int power = scales_.largest_power();
  return power > 0 && std::ldexp(float{kLargestNumber}, power - kOne) < kMostSplitWeight;
}

void WidenedWeight::set_operands(WidenedArgs& args, std::int64_t column) const {
  args.k = k_;
  args.width = width_;
  args.has_nibbles = has_nibbles_;
  args.step = step_;
  args.numbers =
      reinterpret_cast<const std::int8_t*>(numbers_.data()) + column * (has_nibbles_ ? k_ / 2 : k_);
  args.scales = scales_.floats(column);
  args.shorts = scales_.shorts(column);
  args.powers = scales_.powers(column);
}

}  // namespace lathe::engine
