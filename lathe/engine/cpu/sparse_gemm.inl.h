// The product of a row-major x with a matrix of few nonzeros, with rows of x as lanes.
//
// Rows of x are transposed, kWidth of them to a vector and up to kSparseVectors vectors at once, so
// that a nonzero weight is one broadcast and a multiply-add for each vector: no lane is idle
// wherever the zeros are. Weights come in groups of rows that share their columns, where each
// vector of x serves all rows of the group. The columns of x that a chunk of the weights reads fit
// the nearest cache, and a block of sums goes through all chunks before it is transposed back,
// which keeps the order of each sum: its bits are those of `gemm`, which adds the zeros too.

// The most vectors of rows at once that sums of `Group` rows of weights leave registers for.
template <int Group>
constexpr int kSparseVectors = Group == 1 || kWidth == 16 ? 4 : 2;

inline std::int64_t sparse_scratch_size(std::int64_t k) {
  return kSparseVectors<1> * kWidth * round_up(k, kWidth);
}

// Loads up to kWidth rows, `stride` apart, of up to kWidth columns; what is not there is 0.
inline void load_block(const float* x, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                       Vec (&block)[kWidth]) {
  float part[kWidth * kWidth];
  if (rows < kWidth || columns < kWidth) {
    for (std::int64_t r = 0; r < kWidth; ++r)
      store(part + r * kWidth,
            r < rows ? load(x + r * stride, first_lanes(columns)) : broadcast(0.0f));
    x = part;
    stride = kWidth;
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kWidth; ++r) block[r] = load(x + r * stride);
}

// Element [p, r] of the result is element [r, p] of x; lanes beyond the last row are zero.
template <int Vectors>
void transpose_rows(const float* x, std::int64_t rows, std::int64_t k, std::int64_t stride,
                    float* transposed) {
  constexpr std::int64_t kLanes = Vectors * kWidth;
  for (std::int64_t first = 0; first < kLanes; first += kWidth)
    for (std::int64_t p = 0; p < k; p += kWidth) {
      Vec block[kWidth];
      load_block(x + first * stride + p, smaller(rows - first, kWidth), smaller(k - p, kWidth),
                 stride, block);
      transpose(block);
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kWidth; ++i)
        store(transposed + (p + i) * kLanes + first, block[i]);
    }
}

// Adds the products of a group's entries in one chunk to its sums, [Group, Vectors * kWidth], or to
// 0 in the first chunk.
template <int Group, int Vectors>
void add_entries(const float* x, const std::uint16_t* columns, const float* values,
                 std::int64_t count, bool is_first, float* sums) {
  Vec total[Group][Vectors];
#pragma GCC unroll 4
  for (int g = 0; g < Group; ++g)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      total[g][v] = is_first ? broadcast(0.0f) : load(sums + (g * Vectors + v) * kWidth);
  for (std::int64_t i = 0; i < count; ++i) {
    const float* row = x + std::int64_t{columns[i]} * (Vectors * kWidth);
    Vec lanes[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) lanes[v] = load(row + v * kWidth);
#pragma GCC unroll 4
    for (int g = 0; g < Group; ++g) {
      const Vec value = broadcast(values[i * Group + g]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) total[g][v] = fma(lanes[v], value, total[g][v]);
    }
  }
#pragma GCC unroll 4
  for (int g = 0; g < Group; ++g)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(sums + (g * Vectors + v) * kWidth, total[g][v]);
}

// y = sums^T + bias for `rows` of at most kWidth rows, which are lanes of the sums, and kWidth
// columns, which are `stride` apart there.
template <typename Lanes>
void store_transposed(const float* sums, std::int64_t stride, Vec bias, std::int64_t rows, float* y,
                      std::int64_t y_stride, Lanes lanes) {
  Vec block[kWidth];
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kWidth; ++i) block[i] = load(sums + i * stride);
  transpose(block);
  if (rows == kWidth) {
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kWidth; ++r) store(y + r * y_stride, block[r] + bias, lanes);
    return;
  }
  float part[kWidth * kWidth];
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kWidth; ++r) store(part + r * kWidth, block[r] + bias);
  for (std::int64_t r = 0; r < rows; ++r) store(y + r * y_stride, load(part + r * kWidth), lanes);
}

// y = activation(sums^T + bias) + residual for the columns of one block, which begin at `column`.
template <int Vectors>
void finish_sparse_block(const SparseGemmArgs& args, const float* sums, std::int64_t row,
                         std::int64_t rows, std::int64_t column, std::int64_t columns) {
  constexpr std::int64_t kLanes = Vectors * kWidth;
  // What comes after the sums is computed from a buffer, as in `gemm`: y may be the residual.
  const bool is_finished_later = args.activation != Unary::None || args.residual != nullptr;
  float buffer[kWidth * kSparseBlock];
  for (std::int64_t first = 0; first < rows; first += kWidth) {
    const std::int64_t count = smaller(rows - first, kWidth);
    float* const y = args.y + (row + first) * args.y_stride + column;
    float* const to = is_finished_later ? buffer : y;
    const std::int64_t to_stride = is_finished_later ? kSparseBlock : args.y_stride;
    over_lanes(columns, [&](std::int64_t c, auto lanes) {
      const Vec bias = args.bias ? load(args.bias + column + c, lanes) : broadcast(0.0f);
      store_transposed(sums + c * kLanes + first, kLanes, bias, count, to + c, to_stride, lanes);
    });
    if (is_finished_later)
      finish_rows({.rows = count,
                   .columns = columns,
                   .sums = buffer,
                   .sums_stride = kSparseBlock,
                   .activation = args.activation,
                   .residual = args.residual
                                   ? args.residual + (row + first) * args.residual_stride + column
                                   : nullptr,
                   .residual_stride = args.residual_stride,
                   .y = y,
                   .y_stride = args.y_stride});
  }
}

// `rows` rows from `row` on, no more than Vectors vectors of them.
template <int Group, int Vectors>
void multiply_sparse_rows(const SparseGemmArgs& args, std::int64_t row, std::int64_t rows) {
  constexpr std::int64_t kLanes = Vectors * kWidth;
  const SparseMatrix& weight = args.weight;
  transpose_rows<Vectors>(args.x + row * args.x_stride, rows, weight.k, args.x_stride,
                          args.scratch);
  alignas(64) float sums[kSparseBlock * kLanes];
  const std::int32_t* start = weight.starts;
  const std::uint8_t* group = weight.groups;
  for (std::int64_t column = 0; column < weight.n; column += kSparseBlock) {
    const std::int64_t columns = smaller(weight.n - column, kSparseBlock);
    const std::int64_t groups = (columns + Group - 1) / Group;
    // The last vector of columns is transposed whole, with what is beyond them.
    for (std::int64_t i = groups * Group * kLanes; i < round_up(columns, kWidth) * kLanes; ++i)
      sums[i] = 0.0f;
    for (std::int64_t p = 0; p < weight.k; p += kSparseChunk)
      for (std::int64_t g = 0; g < groups; ++g, ++start, ++group)
        add_entries<Group, Vectors>(args.scratch + p * kLanes, weight.columns + start[0],
                                    weight.values + std::int64_t{start[0]} * Group,
                                    start[1] - start[0], p == 0, sums + *group * Group * kLanes);
    finish_sparse_block<Vectors>(args, sums, row, rows, column, columns);
  }
}

template <int Group, int Vectors>
void multiply_sparse_up_to(const SparseGemmArgs& args, std::int64_t row, std::int64_t rows) {
  if constexpr (Vectors > 1)
    if (rows <= (Vectors - 1) * kWidth)
      return multiply_sparse_up_to<Group, Vectors - 1>(args, row, rows);
  multiply_sparse_rows<Group, Vectors>(args, row, rows);
}

template <int Group>
void sparse_gemm_by_groups(const SparseGemmArgs& args) {
  // Blocks of vectors are equal to within one, as tiles of `gemm` are.
  constexpr std::int64_t kMost = kSparseVectors<Group>;
  const std::int64_t vectors = (args.rows + kWidth - 1) / kWidth;
  const std::int64_t blocks = (vectors + kMost - 1) / kMost;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t begin = b * vectors / blocks * kWidth;
    const std::int64_t end = smaller((b + 1) * vectors / blocks * kWidth, args.rows);
    multiply_sparse_up_to<Group, kMost>(args, begin, end - begin);
  }
}

inline void sparse_gemm(const SparseGemmArgs& args) {
  static_assert(kSparseGroup == 4);
  if (args.weight.group == 1)
    sparse_gemm_by_groups<1>(args);
  else
    sparse_gemm_by_groups<kSparseGroup>(args);
}
