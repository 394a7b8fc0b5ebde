// Rotary position embedding: pairs of features of each head turned by the row's angles.

inline void rope_rows(const RopeArgs& args) {
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* cosines = args.cosines + r * args.half;
    const float* sines = args.sines + r * args.half;
    for (std::int64_t head = 0; head < args.heads; ++head) {
      const float* x = args.x + r * args.x_stride + head * 2 * args.half;
      float* y = args.y + r * args.y_stride + head * 2 * args.half;
      if (args.interleaved) {
        for (std::int64_t i = 0; i < args.half; ++i) {
          const float a = x[2 * i], b = x[2 * i + 1];
          y[2 * i] = a * cosines[i] - b * sines[i];
          y[2 * i + 1] = a * sines[i] + b * cosines[i];
        }
        continue;
      }
      over_lanes(args.half, [&](std::int64_t c, auto lanes) {
        const Vec a = load(x + c, lanes), b = load(x + args.half + c, lanes);
        const Vec cosine = load(cosines + c, lanes), sine = load(sines + c, lanes);
        store(y + c, fnma(b, sine, a * cosine), lanes);
        store(y + args.half + c, fma(a, sine, b * cosine), lanes);
      });
    }
  }
}
