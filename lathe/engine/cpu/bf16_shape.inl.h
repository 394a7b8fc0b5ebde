// How the operands of bfloat16 products lie in scratch: shared by the ways to multiply them.

constexpr std::int64_t kPairDepth = 1024;  // of a piece
constexpr std::int64_t kDepthGrain = 32;   // what the deepest instruction multiplies
// A line more than a piece has keeps rows apart in the sets of a cache.
constexpr std::int64_t kLeftStride = kPairDepth + kDepthGrain;

// sums[rows, kPanel] = or += left[rows, depth] . right, where `right` is a panel of pairs and rows
// of `left` are left_stride apart: kLeftStride, unless `reads_rows` says that any will do.
struct PairTile {
  std::int64_t depth;
  const std::uint16_t* left;
  std::int64_t left_stride;
  const std::uint16_t* right;
  float* sums;
  bool accumulate;
};

// What a product does while tiles are multiplied: nothing.
struct NothingBeside {
  void some(std::int64_t /*step*/) {}
};
