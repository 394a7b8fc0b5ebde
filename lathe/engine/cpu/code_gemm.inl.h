// Products of whole numbers of 8 bits, for a file that has included its vectors, gemm.inl.h,
// code_encode.inl.h, code_widened.inl.h, code_vectors.inl.h, and a way through a panel:
// `multiply_panels`, `find_left`, kLeftRows, kPanelGroup and kCodeSpeed.

// Column j of B is numbers[j * stride ...].
inline void code_pack_columns(const std::int8_t* numbers, std::int64_t stride, std::int64_t n,
                              const CodeCut& cut, std::int8_t* packed) {
  const std::int64_t depth = padded_code_depth(cut);
  const std::int32_t offset = weight_offset(cut);
  const bool is_shared = shares_bytes(cut);
  for (std::int64_t column = 0; column < n; column += kPanel) {
    std::int8_t* const panel = packed + code_packed_size(column, cut);
    for (std::int64_t c = 0; c < kPanel; ++c) {
      const std::int8_t* const from = numbers + (column + c) * stride;
      // Padding is 0 as packed, so that whatever x has there does not count.
      const std::int64_t filled = column + c < n ? cut.k : 0;
      for (std::int64_t p = 0; p < depth; ++p) {
        const std::int32_t number = p < filled ? from[p] + offset : 0;
        const std::int64_t line = p / kStep, place = c * kStep + p % kStep;
        if (!is_shared)
          panel[line * kPanel * kStep + place] = static_cast<std::int8_t>(number);
        else if (line % 2 == 0)
          panel[line / 2 * kPanel * kStep + place] = static_cast<std::int8_t>(number);
        else
          panel[line / 2 * kPanel * kStep + place] |= static_cast<std::int8_t>(number << 4);
      }
    }
  }
}

inline void code_pack(const std::int8_t* numbers, std::int64_t n, const CodeCut& cut,
                      std::int8_t* packed) {
  code_pack_columns(numbers, cut.k, n, cut, packed);
}

struct CodeScratch {
  std::int64_t left_stride;  // numbers of a row
  std::int64_t starts, totals, size;
  CodeScratch(std::int64_t rows, const CodeCut& cut)
      : left_stride(round_up(padded_code_depth(cut), 64) + 64),
        starts(round_up(rows, kLeftRows) * left_stride * static_cast<std::int64_t>(sizeof(Left))),
        totals(starts + round_up(rows * cut.blocks * 4, 64)),
        size(totals + kPanelGroup * kLeftRows * kPanel * 4) {}
};
inline std::int64_t code_scratch_bytes(std::int64_t rows, const CodeCut& cut) {
  return CodeScratch(rows, cut).size;
}

// What the sums of each row's blocks begin at.
inline void find_starts(const CodeArgs& args, std::int32_t* starts) {
  const CodeCut& cut = args.cut;
  const std::int32_t offset = weight_offset(cut);
  for (std::int64_t r = 0; r < args.rows; ++r)
    for (std::int64_t b = 0; b < cut.blocks; ++b)
      starts[r * cut.blocks + b] =
          offset == 0 ? 0
                      : -offset * sum_numbers(args.x + r * args.x_stride + b * cut.width,
                                              smaller(cut.width, cut.k - b * cut.width));
}

// y of some rows and columns from their totals, which `total(r, c)` loads, counted from the first.
template <typename Total>
void finish_codes(const CodeArgs& args, std::int64_t row, std::int64_t rows, std::int64_t column,
                  std::int64_t columns, const float* weight_scales, Total total) {
  const CodeCut& cut = args.cut;
  with_function(args.activation, [&](auto f) {
    for (std::int64_t r = 0; r < rows; ++r) {
      // A factor that is there already counts as 1, which changes nothing.
      const Vec of_row = broadcast(cut.x_has_blocks ? 1.0f : args.x_scales[row + r]);
      float* const y = args.y + (row + r) * args.y_stride + column;
      const float* const residual =
          args.residual ? args.residual + (row + r) * args.residual_stride + column : nullptr;
      over_lanes(columns, [&](std::int64_t c, auto lanes) {
        const Vec factor = cut.weight_has_blocks ? of_row : of_row * load(weight_scales + c);
        Vec value = total(r, c) * factor;
        if (args.bias != nullptr) value = value + load(args.bias + column + c, lanes);
        value = f(value);
        if (residual != nullptr) value = value + load(residual + c, lanes);
        store(y + c, value, lanes);
      });
    }
  });
}

// The tile of all rows and the panel that starts at `column`.
inline CodeTile tile_of_panel(const CodeArgs& args, const std::int32_t* starts, float* totals,
                              std::int64_t column) {
  const CodeCut& cut = args.cut;
  const std::int64_t line = column * (cut.weight_has_blocks ? cut.blocks : 1);
  return {.cut = &cut,
          .left = nullptr,
          .left_stride = 0,
          .panel = args.packed + code_packed_size(column, cut),
          .starts = starts,
          .zeros = args.x_zeros,
          .sums = args.sums != nullptr ? args.sums + column * cut.blocks : nullptr,
          .x_scales = args.x_scales,
          .weight_scales = args.weight_scales != nullptr ? args.weight_scales + line : nullptr,
          .weight_powers = args.weight_powers != nullptr ? args.weight_powers + line : nullptr,
          .totals = totals};
}

inline void code_multiply(const CodeArgs& args) {
  const CodeCut& cut = args.cut;
  const CodeScratch parts(args.rows, cut);
  auto* const memory = static_cast<unsigned char*>(args.scratch);
  const CodeLeft left = find_left(args, parts.left_stride, reinterpret_cast<Left*>(memory));
  auto* const starts = reinterpret_cast<std::int32_t*>(memory + parts.starts);
  auto* const totals = reinterpret_cast<float*>(memory + parts.totals);
  find_starts(args, starts);
  [[maybe_unused]] const TileSession session(code_tile_depth(cut));
  multiply_panels(
      args, left, [&](std::int64_t column) { return tile_of_panel(args, starts, totals, column); },
      [&](const CodeTile& part, std::int64_t row, std::int64_t rows, std::int64_t column,
          std::int64_t columns) {
        // Panels have their totals one behind another.
        const auto at = [&](std::int64_t r, std::int64_t c) {
          return totals + c / kPanel * (kLeftRows * kPanel) + r * kPanel + c % kPanel;
        };
        if (cut.blocks > 1)
          finish_codes(args, row, rows, column, columns, part.weight_scales,
                       [&](std::int64_t r, std::int64_t c) { return load(at(r, c)); });
        else
          finish_codes(args, row, rows, column, columns, part.weight_scales,
                       [&](std::int64_t r, std::int64_t c) {
                         return to_floats(without_zeros(part, 0, r, c, load_sums(at(r, c))));
                       });
      });
}

inline ProductGrain code_grain() {
  return {kLeftRows, kPanel, kCodeSpeed};
}
