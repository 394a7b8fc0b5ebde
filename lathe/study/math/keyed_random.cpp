#include "lathe/study/math/keyed_random.h"

namespace lathe::study {

namespace {

// Spreads every bit over the word (splitmix64), so that neighbouring trial numbers and similar
// names do not end up on neighbouring counters.
std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
  return bits ^ bits >> 31;
}

}  // namespace

std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

KeyedRandom::KeyedRandom(std::uint64_t seed, std::uint64_t number, std::string_view purpose)
    : key_(mixed(seed)),
      stream_(mixed(mixed(number + 0x9E3779B97F4A7C15u) ^ stable_hash(purpose))) {}

// A second attempt at the same trial is another question.
KeyedRandom::KeyedRandom(const Proposal& proposal, std::string_view purpose)
    : KeyedRandom(proposal.seed,
                  static_cast<std::uint64_t>(proposal.number) |
                      static_cast<std::uint64_t>(proposal.attempt) << 32,
                  purpose) {}

std::uint64_t KeyedRandom::bits() {
  if (position_ % 2 == 0) {
    const std::uint64_t block = position_ / 2;
    block_ =
        philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
               key_);
  }
  const std::size_t half = position_++ % 2 * 2;
  return static_cast<std::uint64_t>(block_[half]) << 32 | block_[half + 1];
}

double KeyedRandom::next() {
  return static_cast<double>(bits() >> 11) / 9007199254740992.0;
}

}  // namespace lathe::study
