// Where no instruction multiplies four bytes at once, floats are multiplied with floats. Included
// inside a namespace in the place of code_digits_avx512.h.

constexpr std::int64_t kWidenedStep = 1;
constexpr std::int64_t kWidenedColumns = kPanel;

struct DigitRow {};
inline std::int64_t digit_row_bytes(std::int64_t, std::int64_t) {
  return 0;
}
inline DigitRow make_digit_row(const WidenedArgs&, std::int64_t) {
  return {};
}
template <bool HasNibbles, int Vectors>
void multiply_digits(const WidenedArgs&, const DigitRow&, std::int64_t, float*) {}
