// Where a weight of whole numbers that floats are multiplied with lies. Included inside a namespace
// after code_numbers_*.h.

// The scales of a vector's columns, `at` numbers from the first panel's.
inline Vec load_scales(const WidenedArgs& args, std::int64_t at) {
  if (args.shorts != nullptr) return load_bf16(args.shorts + at);
  return args.powers != nullptr ? load_powers(args.powers + at) : load(args.scales + at);
}

// The first of a panel's numbers.
inline const std::int8_t* numbers_of_panel(const WidenedArgs& args, std::int64_t column) {
  return args.numbers + column * (args.has_nibbles ? args.k / 2 : args.k);
}
