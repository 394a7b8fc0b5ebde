// Whole numbers of 8 bits as floats and bfloat16. Included inside a namespace by the kernel files,
// after blocks.inl.h.

template <bool kStreams>
inline void decode_row(const DecodeArgs& args) {
  for (std::int64_t first = 0, index = 0; first < args.columns; first += args.block, ++index) {
    const std::int64_t end = args.columns - first < args.block ? args.columns : first + args.block;
    const Floats scale = broadcast(args.scales[index]);
    std::int64_t i = first;
    for (; i + kWidth <= end; i += kWidth)
      put<kStreams>(args.y + i, widened(args.numbers + i) * scale);
    for (; i < end; ++i) args.y[i] = static_cast<float>(args.numbers[i]) * args.scales[index];
  }
}

void decode_bytes(const DecodeArgs& args) {
  if (args.streams && is_aligned(args.y) && args.block % kWidth == 0) {
    decode_row<true>(args);
    end_streaming();
  } else {
    decode_row<false>(args);
  }
}

// 2^(code - 127 + step_exponent), as codecs/shared_exponent.h has it. Most are normal; below them a
// bit moves down the mantissa.
LATHE_KERNEL_INLINE float power_of_code(std::uint8_t code, std::int32_t step_exponent) {
  const std::int32_t field = code + step_exponent;
  std::uint32_t bits = static_cast<std::uint32_t>(field) << 23;
  if (field <= 0) bits = field > -23 ? std::uint32_t{1} << (22 + field) : 0;
  if (code == 255) bits = 0x7fc00000;
  float power;
  __builtin_memcpy(&power, &bits, sizeof power);
  return power;
}

// Calls body(first, end, scale) for each block.
template <typename Body>
LATHE_KERNEL_INLINE void over_blocks(const UnpackArgs& args, Body body) {
  const std::int64_t count = args.count, block = args.block;
  const std::int32_t step_exponent = args.step_exponent;
  const std::uint8_t* code = args.codes;
  for (std::int64_t first = 0; first < count; first += block, ++code)
    body(first, count - first < block ? count : first + block, power_of_code(*code, step_exponent));
}

template <bool kStreams>
inline void unpack_to_floats(const UnpackArgs& args) {
  const std::int8_t* const numbers = args.numbers;
  float* const y = args.floats;
  over_blocks(args, [=](std::int64_t i, std::int64_t end, float power) {
    const Floats scale = broadcast(power);
    for (; i + kWidth <= end; i += kWidth) put<kStreams>(y + i, widened(numbers + i) * scale);
    for (; i < end; ++i) y[i] = static_cast<float>(numbers[i]) * power;
  });
}

// A number has 8 significant bits and no step is below bfloat16's: the lower halves are 0.
template <bool kStreams>
inline void unpack_to_bf16(const UnpackArgs& args) {
  const std::int8_t* const numbers = args.numbers;
  std::uint16_t* const y = args.bf16;
  over_blocks(args, [=](std::int64_t i, std::int64_t end, float power) {
    const Floats scale = broadcast(power);
    for (; i + 2 * kWidth <= end; i += 2 * kWidth) {
      const Floats low = widened(numbers + i) * scale;
      const Floats high = widened(numbers + i + kWidth) * scale;
      if constexpr (kStreams)
        stream_halves(y + i, low, high);
      else
        store_halves(y + i, low, high);
    }
    for (; i < end; ++i) {
      const float value = static_cast<float>(numbers[i]) * power;
      std::uint32_t bits;
      __builtin_memcpy(&bits, &value, sizeof bits);
      y[i] = static_cast<std::uint16_t>(bits >> 16);
    }
  });
}

void unpack_bytes(const UnpackArgs& args) {
  const bool to_floats = args.floats != nullptr;
  // Every vector of every block must begin where one may be streamed to.
  const bool is_even = args.block % (to_floats ? kWidth : 2 * kWidth) == 0;
  const bool streams =
      args.streams && is_even &&
      (to_floats ? is_aligned(args.floats) : is_aligned(reinterpret_cast<float*>(args.bf16)));
  if (to_floats)
    streams ? unpack_to_floats<true>(args) : unpack_to_floats<false>(args);
  else
    streams ? unpack_to_bf16<true>(args) : unpack_to_bf16<false>(args);
  if (streams) end_streaming();
}
