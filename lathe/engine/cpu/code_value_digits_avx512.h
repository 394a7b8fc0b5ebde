// Weights times values in tile registers, for attention of whole numbers (code_attention.inl.h).
// Values are bytes already. A weight, times what its value's scale is of the sequence's largest,
// becomes a fixed-point number of 31 bits, four digits of base 256: four products of bytes whose
// sums are exact. What is lost of each weight is at most 2^-32 of the largest value.

// Keys whose weights are stored at once: four vectors, of which a digit takes one.
constexpr std::int64_t kWeightGrain = 64;
constexpr std::int64_t kWeightDigits = 4;
constexpr float kDigitRange = 0x1p31f;
// Keys that a sum of 32 bits holds: 255 * 128 each.
constexpr std::int64_t kMostDigitKeys = 65536;
static_assert(kWeightGrain == kDepthGrain && kWeightGrain == 4 * kWidth);

inline std::int64_t value_bytes(std::int64_t lk, std::int64_t d) {
  return round_up(d, kPanel) * round_up(lk, kWeightGrain);
}
// A line more than the keys need keeps rows of a power of two from sharing cache sets.
inline std::int64_t weight_stride(std::int64_t lk) {
  return round_up(lk, kWeightGrain) + 64;
}
inline std::int64_t weight_bytes(std::int64_t lk) {
  return kWeightDigits * kLeftRows * weight_stride(lk);
}
inline std::int64_t value_sum_bytes() {
  return kWeightDigits * kLeftRows * kPanel * 4;
}

struct ValueSums {
  const std::int8_t* values;
  std::int8_t* weights;
  std::int32_t* sums;
  std::int64_t lk, depth;
  float largest;
  ValueSums(const CodeAttentionArgs& args, const void* value_memory, void* weight_memory,
            void* sum_memory)
      : values(static_cast<const std::int8_t*>(value_memory)),
        weights(static_cast<std::int8_t*>(weight_memory)),
        sums(static_cast<std::int32_t*>(sum_memory)),
        lk(args.lk),
        depth(round_up(args.lk, kWeightGrain)),
        largest(largest_scale(args)) {}

  // NaN where one is.
  static float largest_scale(const CodeAttentionArgs& args) {
    float largest = 0;
    for (std::int64_t j = 0; j < args.lk; ++j) {
      const float scale = args.v_scales[j];
      if (!(scale <= largest)) largest = scale;
      if (largest != largest) break;
    }
    return largest;
  }

  // The four bytes of a line of a panel are keys 16 apart, as the digits of four vectors come.
  static __m512i load_line(const CodeAttentionArgs& args, std::int64_t key, std::int64_t column) {
    const Mask lanes = first_lanes(args.d > column ? args.d - column : 0);
    __m512i line = _mm512_setzero_si512();
    for (int i = 3; i >= 0; --i) {
      const std::int64_t of = key + i * kWidth;
      const __m128i bytes = _mm_maskz_loadu_epi8(of < args.lk ? lanes : Mask{0},
                                                 args.v + of * args.k_stride + column);
      line = _mm512_or_si512(_mm512_slli_epi32(line, 8), _mm512_cvtepu8_epi32(bytes));
    }
    return line;
  }

  // Packs the values and gives each key what its weights are multiplied with.
  static void pack(const CodeAttentionArgs& args, void* value_memory, float* factors) {
    auto* const values = static_cast<std::int8_t*>(value_memory);
    const std::int64_t depth = round_up(args.lk, kWeightGrain);
    for (std::int64_t column = 0; column < round_up(args.d, kPanel); column += kWidth) {
      std::int8_t* const panel =
          values + column / kPanel * kPanel * depth + column % kPanel * kStep;
      for (std::int64_t key = 0; key < depth; key += kWeightGrain)
        for (std::int64_t line = 0; line < kTileLines; ++line)
          _mm512_storeu_si512(panel + key * kPanel + line * kPanel * kStep,
                              load_line(args, key + line, column));
    }
    const float largest = largest_scale(args);
    for (std::int64_t j = 0; j < args.lk; ++j)
      factors[j] = largest > 0 ? args.v_scales[j] / largest * kDigitRange : 0.0f;
  }

  void store_weights(std::int64_t r, std::int64_t key, const Vec (&of_keys)[4]) const {
    const auto number = [&](int i) { return _mm512_cvtps_epu32(of_keys[i].value); };
    // Lanes of two numbers whose bytes take turns: digits 0 and 2, and 1 and 3.
    constexpr int kChoose = 0xd8;  // the second where the third has a bit, else the first
    const __m512i upper_bytes = _mm512_set1_epi16(static_cast<short>(0xff00));
    const __m512i upper_halves = _mm512_set1_epi32(static_cast<int>(0xffff0000));
    const auto choose = [](__m512i first, __m512i second, __m512i where) {
      return _mm512_ternarylogic_epi32(first, second, where, kChoose);
    };
    const auto even = [&](__m512i a, __m512i b) {
      return choose(a, _mm512_slli_epi32(b, 8), upper_bytes);
    };
    const auto odd = [&](__m512i a, __m512i b) {
      return choose(_mm512_srli_epi32(a, 8), b, upper_bytes);
    };
    const __m512i a = number(0), b = number(1), c = number(2), d = number(3);
    const __m512i even_ab = even(a, b), even_cd = even(c, d), odd_ab = odd(a, b),
                  odd_cd = odd(c, d);
    std::int8_t* const to = weights + r * weight_stride(lk) + key;
    const std::int64_t plane = kLeftRows * weight_stride(lk);
    const auto lower = [&](__m512i ab, __m512i cd) {
      return choose(ab, _mm512_slli_epi32(cd, 16), upper_halves);
    };
    const auto upper = [&](__m512i ab, __m512i cd) {
      return choose(_mm512_srli_epi32(ab, 16), cd, upper_halves);
    };
    _mm512_storeu_si512(to, lower(even_ab, even_cd));
    _mm512_storeu_si512(to + plane, lower(odd_ab, odd_cd));
    _mm512_storeu_si512(to + 2 * plane, upper(even_ab, even_cd));
    _mm512_storeu_si512(to + 3 * plane, upper(odd_ab, odd_cd));
  }

  // What the digits of some keys add up to in a panel of columns.
  void multiply(std::int64_t rows, std::int64_t from, std::int64_t keys,
                std::int64_t column) const {
    for (std::int64_t digit = 0; digit < kWeightDigits; ++digit) {
      CodeTile tile{};
      tile.left = weights + digit * kLeftRows * weight_stride(lk) + from;
      tile.left_stride = weight_stride(lk);
      tile.panel = values + column * depth + from * kPanel;
      std::int32_t* const to = sums + digit * kLeftRows * kPanel;
      if (rows > kTileLines)
        multiply_code_tiles<true, TileSigns::OfB>(tile, keys, to);
      else
        multiply_code_tiles<false, TileSigns::OfB>(tile, keys, to);
    }
  }

  // Rows of the result from the weights of the first `keys` keys and their totals.
  void finish(const CodeAttentionArgs& args, std::int64_t row, std::int64_t rows, std::int64_t keys,
              const float* totals) const {
    const std::int64_t end = round_up(keys, kWeightGrain);
    const Vec base = broadcast(256.0f), unit = broadcast(1 / kDigitRange);
    for (std::int64_t column = 0; column < args.d; column += kPanel)
      for (std::int64_t from = 0; from < end; from += kMostDigitKeys) {
        multiply(rows, from, smaller(end - from, kMostDigitKeys), column);
        for (std::int64_t r = 0; r < rows; ++r) {
          float* const y = args.out + (row + r) * args.out_stride + column;
          const Vec share = broadcast(largest / totals[r]);
          const auto digit = [&](std::int64_t i, std::int64_t c) {
            const std::int32_t* const at = sums + i * kLeftRows * kPanel + r * kPanel + c;
            return to_floats({_mm512_loadu_si512(at)});
          };
          over_lanes(smaller(args.d - column, kPanel), [&](std::int64_t c, auto lanes) {
            Vec total = fma(digit(3, c), base, digit(2, c));
            total = fma(fma(total, base, digit(1, c)), base, digit(0, c)) * unit * share;
            if (from > 0) total = total + load(y + c, lanes);
            store(y + c, total, lanes);
          });
        }
      }
  }
};
