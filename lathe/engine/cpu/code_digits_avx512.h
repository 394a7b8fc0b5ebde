// Products of a few rows of floats with a weight of whole numbers, in whole numbers: floats become
// fixed-point numbers that reach from the largest of a run 30 bits down, as four digits of base
// 256, whose dot products with the codes are exact. A run is then rounded once, where floats would
// round every sum. Four times the products of 8 bits take less time than making floats of codes.
// Included inside a namespace after code_quads_avx512.h.

constexpr std::int64_t kWidenedStep = kStep;
constexpr std::int64_t kWidenedColumns = kWidth;
constexpr int kDigits = 4;
// Inputs that share an exponent at most: their sums fit 32 bits.
constexpr std::int64_t kMostDigitRun = 256;

inline std::int64_t digit_run(std::int64_t width) {
  return smaller(width, kMostDigitRun);
}
// Runs of a row: none reaches over the end of a block of the weight.
inline std::int64_t num_digit_runs(std::int64_t k, std::int64_t width) {
  const std::int64_t run = digit_run(width), of_block = (width + run - 1) / run;
  return (k + width - 1) / width * of_block;
}

// What a run of inputs is: digits by fours of inputs, the highest first; the sums of its digits
// times minus the offset of codes, where sums begin; and the value of its unit.
struct DigitRun {
  std::int32_t starts[kDigits];
  float unit;
};
struct DigitRow {
  std::int8_t* digits;
  DigitRun* runs;
};

inline std::int64_t digit_row_bytes(std::int64_t k, std::int64_t width) {
  return round_up(kDigits * k + 64, 64) +
         round_up(num_digit_runs(k, width) * static_cast<std::int64_t>(sizeof(DigitRun)), 64);
}

// The digits of x[0 .. count), a multiple of four.
inline DigitRun make_digit_run(const float* x, std::int64_t count, std::int32_t offset,
                               std::int8_t* digits) {
  constexpr std::int32_t kSmallest = -90;  // of exponents: what is below this is nothing
  __m512i largest = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < count; i += kWidth) {
    const Mask lanes = first_lanes(smaller(count - i, kWidth));
    const __m512i bits = _mm512_castps_si512(_mm512_maskz_loadu_ps(lanes, x + i));
    largest = _mm512_max_epu32(largest, _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff)));
  }
  const std::uint32_t most = _mm512_reduce_max_epu32(largest);
  const bool is_finite = most < 0x7f800000u;
  std::int32_t exponent = static_cast<std::int32_t>(most >> 23) - 127;
  if (exponent < kSmallest) exponent = kSmallest;
  const auto power = [](std::int32_t of) {
    const std::int32_t bits = (of + 127) << 23;
    float result;
    __builtin_memcpy(&result, &bits, sizeof result);
    return result;
  };
  // In two steps: the product of both powers need not be a float.
  const __m512 inverse = _mm512_set1_ps(is_finite ? power(-exponent) : 0.0f);
  const __m512 shift = _mm512_set1_ps(power(29));
  // 128 is added to and taken from the lower digits, so that they have signs.
  const __m512i signs = _mm512_set1_epi32(0x00808080);
  const __m512i by_digit =
      _mm512_broadcast_i32x4(_mm_setr_epi8(3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12));
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < count; i += kWidth) {
    const Mask lanes = first_lanes(smaller(count - i, kWidth));
    const __m512 parts = _mm512_mul_ps(
        _mm512_mul_ps(_mm512_maskz_loadu_ps(is_finite ? lanes : Mask{0}, x + i), inverse), shift);
    const __m512i whole =
        _mm512_xor_si512(_mm512_add_epi32(_mm512_cvtps_epi32(parts), signs), signs);
    const __m512i turned = _mm512_shuffle_epi8(whole, by_digit);
    sums = _mm512_dpbusd_epi32(sums, ones, turned);
    _mm512_storeu_si512(digits + i * kDigits, turned);
  }
  DigitRun run;
  const __m128i added = _mm_add_epi32(
      _mm_add_epi32(_mm512_extracti32x4_epi32(sums, 0), _mm512_extracti32x4_epi32(sums, 1)),
      _mm_add_epi32(_mm512_extracti32x4_epi32(sums, 2), _mm512_extracti32x4_epi32(sums, 3)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(run.starts),
                   _mm_mullo_epi32(added, _mm_set1_epi32(-offset)));
  run.unit = is_finite ? power(exponent) * power(-29) : __builtin_nanf("");
  return run;
}

// Calls visit(run, from, count) for the runs of a row, in order.
template <typename Visit>
inline void for_digit_runs(std::int64_t k, std::int64_t width, Visit visit) {
  const std::int64_t most = digit_run(width);
  std::int64_t run = 0;
  for (std::int64_t block = 0; block < k; block += width) {
    const std::int64_t end = smaller(k, block + width);
    for (std::int64_t from = block; from < end; from += most)
      visit(run++, from, smaller(most, end - from));
  }
}

// The digits are written 64 bytes at a time: the last ones of a row reach beyond it.
inline DigitRow make_digit_row(const WidenedArgs& args, std::int64_t row) {
  auto* const memory =
      static_cast<std::int8_t*>(args.scratch) + row * digit_row_bytes(args.k, args.width);
  const DigitRow result{memory,
                        reinterpret_cast<DigitRun*>(memory + round_up(kDigits * args.k + 64, 64))};
  for_digit_runs(args.k, args.width, [&](std::int64_t run, std::int64_t from, std::int64_t count) {
    result.runs[run] =
        make_digit_run(args.x + row * args.x_stride + from, count,
                       args.has_nibbles ? 8 : kVectorOffset, result.digits + kDigits * from);
  });
  return result;
}

// Bytes between what is multiplied and what is asked for meanwhile, in a panel and from the last of
// them into the next: what the processor guesses by itself comes too late, and ends with every
// page.
constexpr std::int64_t kBytesAhead = 2048;

// sums of `Vectors` vectors from a column on, with their bias.
template <bool HasNibbles, int Vectors>
void multiply_digits(const WidenedArgs& args, const DigitRow& row, std::int64_t column,
                     float* sums) {
  const std::int64_t blocks = (args.k + args.width - 1) / args.width;
  constexpr std::int64_t kFourBytes = kStep * kWidth;
  Vec totals[Vectors];
  const std::int8_t* panels[Vectors];
  const std::int64_t panel_bytes = (HasNibbles ? args.k / 2 : args.k) * kWidth;
#pragma GCC unroll 16
  for (int v = 0; v < Vectors; ++v) {
    totals[v] = broadcast(0.0f);
    panels[v] = numbers_of_panel(args, column + v * kWidth);
  }
  for_digit_runs(
      args.k, args.width,
      [&](std::int64_t index, std::int64_t from, std::int64_t count) [[gnu::always_inline]] {
        const DigitRun& run = row.runs[index];
        const std::int8_t* digits = row.digits + kDigits * from;
        Sums parts[kDigits][Vectors];
#pragma GCC unroll 16
        for (int digit = 0; digit < kDigits; ++digit)
#pragma GCC unroll 16
          for (int v = 0; v < Vectors; ++v) parts[digit][v] = start_sums(run.starts[digit]);
        // A vector of columns after another: few registers are needed beside the sums.
        const auto add_four = [&](const Element(&elements)[kDigits], int v,
                                  Columns columns) [[gnu::always_inline]] {
#pragma GCC unroll 16
          for (int digit = 0; digit < kDigits; ++digit)
            parts[digit][v] = add_codes(parts[digit][v], elements[digit], columns);
        };
        constexpr int kHalves = HasNibbles ? 2 : 1;
        const std::int64_t begin = from / kStep, end = (from + count) / kStep;
        for (std::int64_t four = begin; four < end; four += kHalves) {
          const std::int64_t at = four / kHalves * kFourBytes;
          const std::int64_t ahead =
              kBytesAhead + (at + kBytesAhead < panel_bytes ? 0 : (Vectors - 1) * panel_bytes);
#pragma GCC unroll 2
          for (int half = 0; half < kHalves; ++half) {
            Element elements[kDigits];
#pragma GCC unroll 16
            for (int digit = 0; digit < kDigits; ++digit)
              elements[digit] = broadcast_element(digits + digit * kStep);
            digits += kDigits * kStep;
#pragma GCC unroll 16
            for (int v = 0; v < Vectors; ++v) {
              const std::int8_t* const place = panels[v] + at;
              if (half == 0) _mm_prefetch(place + ahead, _MM_HINT_T0);
              Columns columns = load_columns(place);
              if constexpr (HasNibbles) columns = half_of(columns, half);
              add_four(elements, v, columns);
            }
          }
        }
        const std::int64_t block = from / args.width;
        const Vec unit = broadcast(run.unit);
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) {
          Vec whole = to_floats(parts[0][v]);
#pragma GCC unroll 16
          for (int digit = 1; digit < kDigits; ++digit)
            whole = fma(whole, broadcast(256.0f), to_floats(parts[digit][v]));
          const Vec scale = load_scales(args, (column + v * kWidth) * blocks + block * kWidth);
          totals[v] = fma(whole, scale * unit, totals[v]);
        }
      });
#pragma GCC unroll 16
  for (int v = 0; v < Vectors; ++v) {
    const std::int64_t from = column + v * kWidth;
    const Mask lanes = first_lanes(smaller(args.n > from ? args.n - from : 0, kWidth));
    const Vec bias = args.bias ? load(args.bias + from, lanes) : broadcast(0.0f);
    store(sums + v * kWidth, totals[v] + bias);
  }
}
