#pragma once

#include <cstdint>
#include <string>

namespace lathe::hardware {

/// What a design takes of a Xilinx 7 device, as Yosys counts.
struct Resources {
  std::int64_t dsp = 0;     ///< DSP48E1
  std::int64_t bram18 = 0;  ///< RAMB18E1, two for a RAMB36E1
  std::int64_t lut = 0;     ///< fitted, not exact

  Resources& operator+=(const Resources& other);
  bool operator==(const Resources&) const = default;
};

/// "16 DSP, 2 block RAMs, 1200 LUTs".
std::string to_text(const Resources& resources);

/// Multipliers of a times b bits, both two's complement, of which the low `kept` bits are wanted.
/// Small products are made of logic, wide ones of several multipliers.
std::int64_t dsp_of_product(int a, int b, int kept = 128);
/// Multipliers of `bits` bits, two's complement, by a constant: none where it only moves bits.
std::int64_t dsp_of_scaling(int bits, std::int64_t constant, int kept = 128);
enum class MemoryUse { ReadOnly, Written };
/// A memory that is told to be block RAM, with one port to read and one to write.
std::int64_t bram18_of_memory(std::int64_t width, std::int64_t depth, MemoryUse use);
/// True where a memory is worth block RAM: what the generator tells it to be.
bool is_block_memory(std::int64_t width, std::int64_t depth);

}  // namespace lathe::hardware
