#include "lathe/engine/cpu/lying_floats.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace lathe::engine {
namespace {

std::int64_t bytes_of(std::int64_t count, bool is_narrow) {
  return count * (is_narrow ? 2 : 4);
}

std::uint16_t nearest(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

Lying behind(Lying numbers, std::int64_t count) {
  return {static_cast<const char*>(numbers.at) + bytes_of(count, numbers.is_narrow),
          numbers.is_narrow};
}

Written behind(Written numbers, std::int64_t count) {
  return {static_cast<char*>(numbers.at) + bytes_of(count, numbers.is_narrow), numbers.is_narrow};
}

const float* as_floats(Lying numbers, std::int64_t count, std::vector<float>& memory) {
  if (numbers.at == nullptr || !numbers.is_narrow) return static_cast<const float*>(numbers.at);
  memory.resize(static_cast<std::size_t>(count));
  const auto* const from = static_cast<const std::uint16_t*>(numbers.at);
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = std::bit_cast<float>(std::uint32_t{from[i]} << 16);
  return memory.data();
}

void round_floats(float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = std::bit_cast<float>(std::uint32_t{nearest(values[i])} << 16);
}

void put_floats(const float* from, std::int64_t count, Written to) {
  if (!to.is_narrow) {
    std::memmove(to.at, from, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  auto* const place = static_cast<std::uint16_t*>(to.at);
  for (std::int64_t i = 0; i < count; ++i) place[i] = nearest(from[i]);
}

}  // namespace lathe::engine
