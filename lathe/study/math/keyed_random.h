#pragma once

#include <cstdint>
#include <string_view>

#include "lathe/core/philox.h"
#include "lathe/study/math/uniform_source.h"
#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// A stream of random numbers that belongs to one trial and one purpose (a parameter's name, say).
///
/// It depends on nothing else: a worker in another process that is asked about the same trial draws
/// the same numbers, whatever it did before.
class KeyedRandom final : public UniformSource {
 public:
  KeyedRandom(std::uint64_t seed, std::uint64_t number, std::string_view purpose);
  KeyedRandom(const Proposal& proposal, std::string_view purpose);

  double next() override;
  /// 64 random bits.
  std::uint64_t bits();

 private:
  std::uint64_t key_;
  std::uint64_t stream_;
  std::uint64_t position_ = 0;
  PhiloxCounter block_ = {};
};

/// A hash of a text that is the same everywhere (FNV-1a).
std::uint64_t stable_hash(std::string_view text);

}  // namespace lathe::study
