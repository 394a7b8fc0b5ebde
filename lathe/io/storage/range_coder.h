#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// Arithmetic coding of single bits: one that was given the probability p costs -log2(p) bits.
/// Whole numbers only, so that every machine writes and reads the same bytes.
namespace lathe::io {

/// Probabilities are in parts of 65536; neither bit may have all of it.
inline constexpr int kProbabilityBits = 16;

class RangeEncoder {
 public:
  /// `one` is the probability of a set bit, 1 to 65535.
  void put(bool bit, std::uint32_t one) {
    const std::uint64_t part = (range_ >> kProbabilityBits) * one;
    if (bit) {
      range_ = part;
    } else {
      low_ += part;
      if (low_ < part) carry();
      range_ -= part;
    }
    while (range_ < kLeastRange) shift_out();
  }
  /// What was written, without zeros at its end: a decoder reads them where the bytes stop.
  std::vector<std::uint8_t> finish();

 private:
  friend class RangeDecoder;
  static constexpr std::uint64_t kLeastRange = std::uint64_t{1} << 32;

  void carry();
  void shift_out();

  std::vector<std::uint8_t> bytes_;
  std::uint64_t low_ = 0;
  std::uint64_t range_ = ~std::uint64_t{0};
};

class RangeDecoder {
 public:
  explicit RangeDecoder(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    for (int i = 0; i < 2; ++i) shift_in();
  }
  /// The next bit, given the probability it was written with.
  bool take(std::uint32_t one) {
    const std::uint64_t part = (range_ >> kProbabilityBits) * one;
    const bool bit = code_ < part;
    // No branch: nobody can guess which way it would go.
    const std::uint64_t above = static_cast<std::uint64_t>(bit) - 1;
    code_ -= part & above;
    range_ = part + ((range_ - 2 * part) & above);
    while (range_ < RangeEncoder::kLeastRange) {
      shift_in();
      range_ <<= 32;
    }
    return bit;
  }
  /// Whether no byte is left over. Bytes that nobody wrote give bits as well.
  bool is_at_end() const { return next_ >= bytes_.size(); }

 private:
  void shift_in();

  std::span<const std::uint8_t> bytes_;
  std::size_t next_ = 0;
  std::uint64_t code_ = 0;
  std::uint64_t range_ = ~std::uint64_t{0};
};

}  // namespace lathe::io
