// The sum of whole numbers, where no instruction adds up bytes. Included inside a namespace.

inline std::int32_t sum_numbers(const std::int8_t* from, std::int64_t count) {
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += from[i];
  return sum;
}
