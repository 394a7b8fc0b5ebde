#include "lathe/hardware/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace lathe::hardware {

Resources& Resources::operator+=(const Resources& other) {
  dsp += other.dsp;
  bram18 += other.bram18;
  lut += other.lut;
  return *this;
}

std::string to_text(const Resources& resources) {
  const auto count = [](std::int64_t n, const char* one, const char* many) {
    return fmt::format("{} {}", n, n == 1 ? one : many);
  };
  return fmt::format("{} DSP, {}, {}", resources.dsp,
                     count(resources.bram18, "block RAM of 18 kbit", "block RAMs of 18 kbit"),
                     count(resources.lut, "LUT", "LUTs"));
}

std::int64_t dsp_of_product(int a, int b, int kept) {
  // synth_xilinx leaves products of less than nine bits to logic. A DSP48 takes 25 by 18 bits; what
  // is wider is cut into pieces of 17, signs apart, for the shift of its cascade, and the last of
  // them takes as much as it can.
  const int wide = std::max(a, b), narrow = std::min(a, b);
  if (narrow < 2 || std::min(kept, a + b) < 9) return 0;
  constexpr int kPiece = 17;
  const auto pieces = [](int bits, int most) {
    return bits <= most ? 1 : 1 + (bits - most + kPiece - 1) / kPiece;
  };
  return static_cast<std::int64_t>(pieces(wide, 25)) * pieces(narrow, 18);
}

std::int64_t dsp_of_scaling(int bits, std::int64_t constant, int kept) {
  const auto pattern = static_cast<std::uint64_t>(constant);
  if (constant <= 0 || std::has_single_bit(pattern)) return 0;
  return dsp_of_product(bits, static_cast<int>(std::bit_width(pattern)) + 1, kept);
}

std::int64_t bram18_of_memory(std::int64_t width, std::int64_t depth, MemoryUse use) {
  // Yosys folds a memory that is deeper than a block: parts of it stand side by side, in whole
  // bytes of nine bits where parts are written. Of blocks of 18 and 36 kbit in all their shapes it
  // takes what costs least, and one large block costs a little less than two small ones.
  struct Size {
    std::int64_t widest, shallowest, cost, in_18k;
  };
  constexpr std::array<Size, 2> kBlocks = {{{36, 512, 129, 1}, {72, 512, 257, 2}}};
  std::int64_t best = 0, lowest = 0;
  for (const Size& block : kBlocks)
    for (std::int64_t wide = block.widest, deep = block.shallowest; wide > 0; deep *= 2) {
      const std::int64_t parts = (depth + deep - 1) / deep;
      const std::int64_t part =
          parts > 1 && use == MemoryUse::Written ? (width + 8) / 9 * 9 : width;
      const std::int64_t count = (parts * part + wide - 1) / wide;
      if (best == 0 || count * block.cost < lowest) {
        lowest = count * block.cost;
        best = count * block.in_18k;
      }
      wide = wide == 9 ? 4 : wide / 2;  // narrower ones leave the ninth bits out
    }
  return best;
}

bool is_block_memory(std::int64_t width, std::int64_t depth) {
  return depth >= 64 && width * depth >= 8192;
}

}  // namespace lathe::hardware
