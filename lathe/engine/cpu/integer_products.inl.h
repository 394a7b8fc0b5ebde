// Products of 16-bit integers summed along the rows of two matrices.

// Rows [i, i + kRows) of a with rows [j, j + kColumns) of b, their sums in registers.
template <int kRows, int kColumns>
inline void integer_products_tile(const IntegerProductsArgs& args, std::int64_t i, std::int64_t j) {
  ProductSums sums[kRows][kColumns];
  for (auto& row : sums)
    for (ProductSums& sum : row) sum = no_products();
  for (std::int64_t p = 0; p < args.depth; p += kShorts) {
    Shorts b[kColumns];
    for (int c = 0; c < kColumns; ++c) b[c] = load_shorts(args.b + (j + c) * args.b_stride + p);
    for (int r = 0; r < kRows; ++r) {
      const Shorts a = load_shorts(args.a + (i + r) * args.a_stride + p);
      for (int c = 0; c < kColumns; ++c) sums[r][c] = add_products(sums[r][c], a, b[c]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) args.y[(i + r) * args.y_stride + j + c] = total(sums[r][c]);
}

template <int kRows>
inline void integer_products_rows(const IntegerProductsArgs& args, std::int64_t i) {
  std::int64_t j = 0;
  for (; j + 4 <= args.n; j += 4) integer_products_tile<kRows, 4>(args, i, j);
  for (; j < args.n; ++j) integer_products_tile<kRows, 1>(args, i, j);
}

inline void integer_products(const IntegerProductsArgs& args) {
  std::int64_t i = 0;
  for (; i + 2 <= args.m; i += 2) integer_products_rows<2>(args, i);
  for (; i < args.m; ++i) integer_products_rows<1>(args, i);
}
