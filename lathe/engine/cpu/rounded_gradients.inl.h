// Both gradients of a convolution whose numbers are rounded to bfloat16, with those of the norm
// behind it and of relu in front, for a file that has included window_gradient_layout.inl.h and a
// way to multiply what is laid out: see split_window_table.h.
//
// What comes back through the norm is rounded and laid out once, as the gradient of x multiplies
// it; the zeros around it are what the gradient of the filters needs between two lines, too.

// The gradient of the filters alone.
inline bool add_rounded_gradient(const SplitWindowGradientArgs& args) {
  const SplitFrame& frame = args.frame;
  const GradientScratch scratch(frame, args.n, true);
  const RoundedPair pair(scratch, args.n);
  auto* const memory = static_cast<unsigned char*>(args.scratch);
  auto* const rounded = reinterpret_cast<std::uint16_t*>(memory + args.images * scratch.size);
  std::uint16_t* const rounded_dy = rounded + pair.x.sums / 2;
  for (std::int64_t i = 0; i < args.images; ++i) {
    const Lying x = behind(args.x, i * frame.height * frame.width * frame.channels);
    const Lying dy = behind(args.dy, i * frame.out_height * frame.out_width * args.n);
    if (!lay_out_x(pair.x, kMostSplitGradient, {}, x, rounded) ||
        !lay_out_x(pair.dy, kMostSplitGradient, {}, dy, rounded_dy))
      return false;
    auto* const place = reinterpret_cast<std::uint16_t*>(memory + i * scratch.size);
    put_rounded_pairs(pair.x, scratch, rounded, place);
    put_rounded_turned(pair.dy, scratch, 0, args.n, rounded_dy, place + scratch.dy / 2);
  }
  add_rounded_laid_out(args, scratch);
  return true;
}

// What comes back through a norm.
struct ReturnedPixels {
  Lying dy, y;
  Vec center, factor, shift, slope;

  ReturnedPixels(const NormBehind& norm, Lying given, Lying of, std::int64_t c)
      : dy(behind(given, c)),
        y(behind(of, c)),
        center(load(norm.center + c)),
        factor(load(norm.factor + c)),
        shift(load(norm.shift + c)),
        slope(load(norm.slope + c)) {}
  [[gnu::always_inline]] Vec operator()(std::int64_t at) const {
    return factor * fnma(load(y, at) - center, slope, load(dy, at) - shift);
  }
};

// Takes the gradient of 16 channels of x, of one image, back through relu, and sums it and its
// products with what the norm in front of relu is of.
template <bool HasMore, bool IsMade>
struct ReturningRelu {
  Written dx;
  Lying more;
  Lying x;     // what relu made, where it lies
  Lying norm;  // what the norm is of
  std::int64_t n;
  Vec center, slope, bias;
  double* sums;

  ReturningRelu(const RoundedGradientsArgs& args, std::int64_t image, std::int64_t c)
      : n(args.weight.frame.channels),
        center(load(args.relu.center + c)),
        slope(IsMade ? load(args.front.slope + c) : broadcast(0.0f)),
        bias(IsMade ? load(args.front.bias + c) : broadcast(0.0f)),
        sums(args.relu.sums + image * 2 * n + c) {
    const std::int64_t at = image * args.weight.frame.height * args.weight.frame.width * n + c;
    dx = behind(args.dx, at);
    more = HasMore ? behind(args.relu.more, at) : Lying{};
    x = behind(args.weight.x, at);
    norm = behind(args.relu.norm, at);
  }

  [[gnu::always_inline]] void operator()(std::int64_t first, std::int64_t count, const float* from,
                                         std::int64_t step) const {
    const Vec zero = broadcast(0.0f);
    const auto add = [&](std::int64_t i, Vec& total, Vec& products) {
      const std::int64_t at = (first + i) * n;
      Vec g = rounded_result(load(from + i * step));
      if constexpr (HasMore) g = g + load(more, at);
      const Vec distance = load(norm, at) - center;
      const Vec seen = IsMade ? fma(distance, slope, bias) : load(x, at);
      g = select(less(zero, seen), g, zero);
      store(dx, at, g);
      total = total + g;
      products = fma(g, distance, products);
    };
    add_both_sums(count, add, sums, n);
  }
};

// Where images are laid out: all of them as the gradient of the filters needs them, and one as it
// was rounded.
struct BothLayouts {
  GradientScratch scratch;
  RoundedLayout x, dy;
  std::int64_t first;  // the pixel of the laid out dy where its own begin
  std::int64_t dy_place, sums, size;

  BothLayouts(const SplitFrame& frame, const SplitFrame& back, std::int64_t images)
      : scratch(frame, back.channels, true),
        x(frame, 2 * scratch.pairs + 2),
        dy(back, (back.top + 1) * scratch.frame.line + scratch.steps * kGradientStep + 2),
        first(back.top * scratch.frame.line + back.left),
        dy_place(images * scratch.size + x.sums),
        sums(dy_place + dy.sums),
        size(sums + kSumNumbers * 4) {}
};

inline std::int64_t rounded_gradients_scratch_bytes(const SplitFrame& frame, const SplitFrame& back,
                                                    std::int64_t images) {
  return BothLayouts(frame, back, images).size;
}

template <typename ResultsOf>
[[gnu::always_inline]] inline void multiply_back(const RoundedGradientsArgs& args,
                                                 const BothLayouts& layouts,
                                                 const std::uint16_t* dy, float* sums,
                                                 std::int64_t image, const ResultsOf& results_of) {
  const SplitFrame& frame = args.weight.frame;
  const std::int64_t of_x = frame.height * frame.width * frame.channels;
  const std::int64_t of_dy = frame.out_height * frame.out_width * args.weight.n;
  const bool has_next = image + 1 < args.weight.images || args.has_next;
  multiply_laid_out(layouts.dy, frame.channels, dy, args.filters, sums, results_of,
                    [&](std::int64_t part, std::int64_t parts) {
                      if (!has_next) return;
                      const auto ask = [&](Lying images, std::int64_t size) {
                        ask_for<false>(behind(images, (image + 1) * size).at, part, parts,
                                       size * number_bytes(images.is_narrow));
                      };
                      ask(args.weight.dy, of_dy);
                      ask(args.norm.y, of_dy);
                      ask(args.weight.x, of_x);
                      if (args.relu.sums != nullptr && args.relu.norm.at != args.weight.x.at)
                        ask(args.relu.norm, of_x);
                      if (args.relu.more.at != nullptr) ask(args.relu.more, of_x);
                    });
}

template <bool HasMore, bool IsMade>
void multiply_back_through_relu(const RoundedGradientsArgs& args, const BothLayouts& layouts,
                                const std::uint16_t* dy, float* sums, std::int64_t image) {
  multiply_back(args, layouts, dy, sums, image,
                [&](std::int64_t c) { return ReturningRelu<HasMore, IsMade>(args, image, c); });
}

inline void multiply_back_image(const RoundedGradientsArgs& args, const BothLayouts& layouts,
                                const std::uint16_t* dy, float* sums, std::int64_t image) {
  const bool has_more = args.relu.more.at != nullptr, is_made = args.front.center != nullptr;
  if (args.relu.sums != nullptr) {
    const std::int64_t n = args.weight.frame.channels;
    for (std::int64_t i = 0; i < 2 * n; ++i) args.relu.sums[image * 2 * n + i] = 0;
    if (is_made)
      return has_more ? multiply_back_through_relu<true, true>(args, layouts, dy, sums, image)
                      : multiply_back_through_relu<false, true>(args, layouts, dy, sums, image);
    return has_more ? multiply_back_through_relu<true, false>(args, layouts, dy, sums, image)
                    : multiply_back_through_relu<false, false>(args, layouts, dy, sums, image);
  }
  const SplitFrame& frame = args.weight.frame;
  SplitWindowArgs results{};
  results.n = frame.channels;
  results.y = behind(args.dx, image * frame.height * frame.width * frame.channels);
  multiply_back(args, layouts, dy, sums, image,
                [&](std::int64_t c) { return RoundedResults<false>(results, nullptr, c); });
}

inline std::int64_t add_rounded_gradients(const RoundedGradientsArgs& args) {
  const SplitFrame& frame = args.weight.frame;
  const BothLayouts layouts(frame, args.back, args.weight.images);
  auto* const memory = static_cast<unsigned char*>(args.weight.scratch);
  auto* const x =
      reinterpret_cast<std::uint16_t*>(memory + args.weight.images * layouts.scratch.size);
  auto* const dy = reinterpret_cast<std::uint16_t*>(memory + layouts.dy_place);
  auto* const sums = reinterpret_cast<float*>(memory + layouts.sums);
  SplitWindowGradientArgs done = args.weight;
  for (done.images = 0; done.images < args.weight.images; ++done.images) {
    const std::int64_t windows = done.images * frame.out_height * frame.out_width;
    const std::int64_t pixels = done.images * frame.height * frame.width;
    const Lying given = behind(args.weight.dy, windows * args.weight.n);
    const Lying of = behind(args.norm.y, windows * args.weight.n);
    if (!lay_out_rounded(
            layouts.dy, kMostSplitGradient,
            [&](std::int64_t f) { return ReturnedPixels(args.norm, given, of, f); }, dy) ||
        !lay_out_x(layouts.x, kMostSplitGradient, args.front,
                   behind(args.weight.x, pixels * frame.channels), x))
      break;
    multiply_back_image(args, layouts, dy, sums, done.images);
    auto* const place =
        reinterpret_cast<std::uint16_t*>(memory + done.images * layouts.scratch.size);
    put_rounded_pairs(layouts.x, layouts.scratch, x, place);
    put_rounded_turned(layouts.dy, layouts.scratch, layouts.first, args.weight.n, dy,
                       place + layouts.scratch.dy / 2);
  }
  if (done.images > 0) add_rounded_laid_out(done, layouts.scratch);
  return done.images;
}
