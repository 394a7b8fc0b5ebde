#include "lathe/io/storage/range_coder.h"

namespace lathe::io {

// The sum went over the top: one more in what is already written.
void RangeEncoder::carry() {
  for (auto byte = bytes_.rbegin(); byte != bytes_.rend(); ++byte)
    if (++*byte != 0) return;
}

void RangeEncoder::shift_out() {
  for (int shift = 56; shift >= 32; shift -= 8)
    bytes_.push_back(static_cast<std::uint8_t>(low_ >> shift));
  low_ <<= 32;
  range_ <<= 32;
}

std::vector<std::uint8_t> RangeEncoder::finish() {
  // Any number from low to low + range will do: the one with the most zeros at its end.
  const std::uint64_t before = low_;
  low_ += range_ - 1;
  if (low_ < before) carry();
  for (int bits = 63; bits > 0; --bits) {
    const std::uint64_t rounded = low_ >> bits << bits;
    // Taken as distances from the lower end, which do not wrap around.
    if (low_ - rounded <= range_ - 1) {
      low_ = rounded;
      break;
    }
  }
  for (int i = 0; i < 2; ++i) shift_out();
  while (!bytes_.empty() && bytes_.back() == 0) bytes_.pop_back();
  return std::move(bytes_);
}

void RangeDecoder::shift_in() {
  for (int i = 0; i < 4; ++i) {
    code_ = code_ << 8 | (next_ < bytes_.size() ? bytes_[next_] : 0);
    ++next_;
  }
}

}  // namespace lathe::io
