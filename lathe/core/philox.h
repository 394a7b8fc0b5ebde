#pragma once

#include <array>
#include <cstdint>

namespace lathe {

/// Philox 4x32-10: 128 random bits as a pure function of a 64-bit key and a 128-bit counter.
///
/// Because nothing is carried from one number to the next, an element's number depends only on
/// where it is, never on threads, batches or what was drawn before.
using PhiloxCounter = std::array<std::uint32_t, 4>;

constexpr PhiloxCounter philox(PhiloxCounter counter, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ k1,
               static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

/// A number in the open interval (0, 1) from 32 random bits.
constexpr double unit_interval(std::uint32_t bits) {
  return (static_cast<double>(bits) + 0.5) / 4294967296.0;
}

}  // namespace lathe
