// Whole numbers of 8 bits as floats. Included inside a namespace by the kernel files, after
// blocks.inl.h.

using SignedBytes __attribute__((vector_size(kWidth))) = std::int8_t;

LATHE_KERNEL_INLINE Floats widened(const std::int8_t* from) {
  SignedBytes bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(__builtin_convertvector(bytes, Ints), Floats);
}

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
