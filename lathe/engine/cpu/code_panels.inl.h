// Going through a panel by vectors alone, for a file that has included code_vectors.inl.h.

constexpr std::int64_t kLeftRows = kCodeRows;
constexpr std::int64_t kPanelGroup = 1;

// Nothing to set up.
struct TileSession {
  explicit TileSession(int = 0) {}
};

inline int code_tile_depth(const CodeCut&) {
  return 0;
}

inline CodeLeft find_left(const CodeArgs& args, std::int64_t stride, Left* scratch) {
  if constexpr (sizeof(Left) == 1)
    if (padded_code_depth(args.cut) == args.cut.k)
      return {reinterpret_cast<const Left*>(args.x), args.x_stride, args.rows, nullptr, 0};
  for (std::int64_t r = 0; r < args.rows; ++r) {
    Left* const to = scratch + r * stride;
    const std::int8_t* const from = args.x + r * args.x_stride;
    for (std::int64_t p = 0; p < args.cut.k; ++p) to[p] = static_cast<Left>(from[p]);
    for (std::int64_t p = args.cut.k; p < stride; ++p) to[p] = 0;
  }
  return {scratch, stride, args.rows, nullptr, 0};
}

template <typename TileOf, typename Finish>
void multiply_panels(const CodeArgs& args, const CodeLeft& left, TileOf tile_of, Finish finish) {
  multiply_vectors(args, left, tile_of, finish);
}
