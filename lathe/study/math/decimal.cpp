#include "lathe/study/math/decimal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

namespace lathe::study {
namespace {

__extension__ using Wide = __int128;
constexpr Wide kLimit = Wide{1'000'000'000'000'000'000} * 1'000'000'000'000'000'000;  // 10^36

// digits * 10^exponent
struct Decimal {
  Wide digits = 0;
  int exponent = 0;
};

// The shortest digits that give the number back, as it would be printed.
Decimal decimal_of(double number) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, std::abs(number),
                                 std::chars_format::scientific);
  Decimal result;
  bool is_fraction = false;
  const char* c = buffer;
  for (; c != end.ptr && *c != 'e'; ++c) {
    if (*c == '.') {
      is_fraction = true;
      continue;
    }
    result.digits = result.digits * 10 + (*c - '0');
    if (is_fraction) --result.exponent;
  }
  int exponent = 0;
  if (c != end.ptr) {
    ++c;
    if (*c == '+') ++c;  // from_chars reads no plus
    std::from_chars(c, end.ptr, exponent);
  }
  result.exponent += exponent;
  if (number < 0) result.digits = -result.digits;
  return result;
}

// The digits at a smaller exponent, or nothing when they would not fit.
std::optional<Wide> digits_at(const Decimal& decimal, int exponent) {
  Wide digits = decimal.digits;
  if (digits == 0) return digits;
  for (int i = exponent; i < decimal.exponent; ++i) {
    digits *= 10;
    if (digits > kLimit || digits < -kLimit) return {};
  }
  return digits;
}

double to_double(Wide digits, int exponent) {
  std::string text;
  const bool is_negative = digits < 0;
  if (is_negative) digits = -digits;
  do {
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(digits % 10)));
    digits /= 10;
  } while (digits != 0);
  text = fmt::format("{}{}e{}", is_negative ? "-" : "", text, exponent);
  double result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

}  // namespace

double last_step(double low, double high, double step) {
  const Decimal l = decimal_of(low);
  const Decimal h = decimal_of(high);
  const Decimal s = decimal_of(step);
  const int exponent = std::min({l.exponent, h.exponent, s.exponent});
  const auto low_digits = digits_at(l, exponent);
  const auto high_digits = digits_at(h, exponent);
  const auto step_digits = digits_at(s, exponent);
  // Numbers of such different sizes have no common digits worth keeping.
  if (!low_digits || !high_digits || !step_digits)
    return std::min(high, low + std::floor((high - low) / step) * step);
  const Wide range = *high_digits - *low_digits;
  if (range % *step_digits == 0) return high;
  return to_double(*low_digits + range / *step_digits * *step_digits, exponent);
}

}  // namespace lathe::study
