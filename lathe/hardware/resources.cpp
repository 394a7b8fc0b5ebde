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

std::int64_t dsp_of_product(int a, int b) {
  // synth_xilinx leaves products whose operands have ten bits together or fewer, and those of very
  // narrow operands, to logic; a DSP48 takes 25 by 18 bits.
  const int wide = std::max(a, b);
  const int narrow = std::min(a, b);
  if (wide + narrow < 10 || narrow < 2) return 0;
  const auto pieces = [](int bits, int first) {
    return bits <= first ? 1 : 1 + (bits - first + first - 2) / (first - 1);
  };
  return static_cast<std::int64_t>(pieces(wide, 25)) * pieces(narrow, 18);
}

std::int64_t dsp_of_scaling(int bits, std::int64_t constant) {
  const auto pattern = static_cast<std::uint64_t>(constant);
  if (constant <= 0 || std::has_single_bit(pattern)) return 0;
  return dsp_of_product(bits, static_cast<int>(std::bit_width(pattern)) + 1);
}

std::int64_t bram18_of_memory(std::int64_t width, std::int64_t depth) {
  // A block of 18 kbit in its shapes for one write and one read port.
  struct Shape {
    std::int64_t width, depth;
  };
  constexpr std::array<Shape, 6> kShapes = {
      {{36, 512}, {18, 1024}, {9, 2048}, {4, 4096}, {2, 8192}, {1, 16384}}};
  std::int64_t best = 0;
  for (const Shape& shape : kShapes) {
    const std::int64_t count =
        (width + shape.width - 1) / shape.width * ((depth + shape.depth - 1) / shape.depth);
    if (best == 0 || count < best) best = count;
  }
  return best;
}

bool is_block_memory(std::int64_t width, std::int64_t depth) {
  return depth >= 64 && width * depth >= 8192;
}

}  // namespace lathe::hardware
