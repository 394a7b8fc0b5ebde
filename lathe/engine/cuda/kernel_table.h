#pragma once

#include <cstddef>
#include <cstdint>

#include "lathe/numerics/kernels/kernel_table.h"

// What liblathe_cuda.so offers. Plain data and function pointers only: the library is compiled by
// nvcc, links to nothing of ours, and is loaded when a GPU is asked for; whatever plans, checks and
// explains is ordinary C++ on this side. A kernel launches and returns; `Device::launch_error` says
// what went wrong.
namespace lathe::engine::cuda {

/// Raised whenever a struct below changes: a library of another number is refused.
inline constexpr std::int32_t kTableVersion = 6;

struct Stream;   ///< a cudaStream_t
struct Capture;  ///< a cudaGraphExec_t
struct Gemm;     ///< a cuBLASLt handle with its workspace

/// A size that a captured graph must not bake in. Launches are made for `capacity`; how much of it
/// is there in this run is scale * *symbol + offset, read from device memory.
///
/// What a kernel writes beyond the real size is zero, up to the capacity: a matrix product reads
/// all rows of its operands.
struct Extent {
  const std::int32_t* symbol = nullptr;  ///< null: always the capacity
  std::int64_t scale = 0, offset = 0;
  std::int64_t capacity = 0;
};

/// Whole numbers of 32 or 64 bits.
struct Integers {
  const void* data = nullptr;
  bool is_wide = false;
};

/// How an element lies in memory.
enum class Number : std::int32_t { F64, F32, F16, BF16, I64, I32, I16, I8, U8, Bool };

/// Where a kernel reports what it cannot refuse: the smallest number of a faulty step.
struct Fault {
  std::int32_t* first = nullptr;
  std::int32_t step = 0;
};

/// What the products (linear, matmul, attention) of a run see of their operands. Sums are float in
/// every case.
enum class Precision : std::int32_t {
  Float32,  ///< all of them: true float products
  Tf32,     ///< operands rounded to 10 bits after the leading one; results are float
  Bf16,     ///< operands and results rounded to bfloat16, ties to even
};

enum class Map : std::int32_t {
  Identity,
  Relu,
  GeluErf,
  GeluTanh,
  Tanh,
  Sigmoid,
  Silu,
  QuickGelu,
  Exp,
  Erf,
  Log,
  Negate,
  Abs,
  Sqrt,
  Reciprocal,
  Cos,
  Sin,
  LeakyRelu,
};

enum class Pair : std::int32_t { Add, Subtract, Multiply, Divide, Minimum, Maximum, Power };

struct MapArgs {
  Map map = Map::Identity;
  float slope = 0;
  const float* x = nullptr;
  float* y = nullptr;
  Extent count;
};

/// dx = dy * map'(x).
struct MapGradientArgs {
  Map map = Map::Identity;
  float slope = 0;
  const float* dy = nullptr;
  const float* x = nullptr;
  float* dx = nullptr;
  Extent count;
};

inline constexpr int kMostAxes = 8;

/// How the elements of a result, counted in row-major order, walk along an operand.
struct Walk {
  std::int64_t strides[kMostAxes] = {};
};

struct PairArgs {
  Pair pair = Pair::Add;
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;
  std::int32_t rank = 0;
  std::int64_t dims[kMostAxes] = {};
  Walk a_walk, b_walk;
  Extent count;
};

/// y = dy * the derivative of the pair by its operand 0 or 1.
struct PairGradientArgs {
  PairArgs pair;  ///< y is the result
  const float* dy = nullptr;
  std::int32_t operand = 0;
};

/// y[walk of y] = x[walk of x] for every index of `dims`; with a factor, of floats.
struct CopyArgs {
  const void* x = nullptr;
  void* y = nullptr;
  std::int32_t element_bytes = 4;
  std::int32_t rank = 0;
  std::int64_t dims[kMostAxes] = {};
  Walk x_walk, y_walk;
  float factor = 1;
  Extent count;
};

struct FillArgs {
  std::uint32_t* y = nullptr;
  std::uint32_t pattern = 0;
  Extent count;
};

struct CastArgs {
  Number from = Number::F32, to = Number::F32;
  const void* x = nullptr;
  void* y = nullptr;
  Extent count;
};

enum class Reduction : std::int32_t { Sum, Mean, Max };
/// Each result reduces the elements that the reduced axes reach from its own first element.
struct ReduceArgs {
  Reduction reduction = Reduction::Sum;
  const float* x = nullptr;
  float* y = nullptr;
  std::int32_t rank = 0, reduced_rank = 0;
  std::int64_t dims[kMostAxes] = {}, reduced_dims[kMostAxes] = {};
  Walk walk, reduced_walk;
  Extent count;       ///< results
  Extent outer_axis;  ///< the first reduced axis
};

/// dx = dy at the largest of the elements that share it, in equal parts.
struct MaxGradientArgs {
  ReduceArgs reduce;  ///< of x; y is unused
  const float* dy = nullptr;
  float* dx = nullptr;
  Extent elements;
};

/// Sums over rows: y[c] = sum of x[r, c]. `scratch` holds num_row_chunks(capacity) * n doubles.
struct SumRowsArgs {
  const float* x = nullptr;
  float* y = nullptr;
  double* scratch = nullptr;
  std::int64_t n = 0;
  Extent rows;
};

enum class Softmax : std::int32_t { Forward, Logarithm, Gradient, LogarithmGradient };
/// Along the middle axis of [outer, size, inner]; `y` is the gradients' second operand.
struct SoftmaxArgs {
  Softmax kind = Softmax::Forward;
  const float* x = nullptr;
  const float* y = nullptr;
  float* out = nullptr;
  std::int64_t size = 0, inner = 1;
  Extent outer;
};

struct NormalizeArgs {
  bool is_rms = false;
  const float* x = nullptr;
  const float* residual = nullptr;  ///< added to x; may be null
  const float* gamma = nullptr;
  const float* beta = nullptr;  ///< null for rms
  float* y = nullptr;
  float eps = 0;
  std::int64_t n = 0;
  Extent rows;
};

/// `statistics` holds 2 * rows floats, `scratch` num_row_chunks(capacity) * 2 * n doubles.
struct NormalizeGradientArgs {
  bool is_rms = false;
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* gamma = nullptr;
  float* dx = nullptr;
  float* dgamma = nullptr;
  float* dbeta = nullptr;  ///< null for rms
  float* statistics = nullptr;
  double* scratch = nullptr;
  float eps = 0;
  std::int64_t n = 0;
  Extent rows;
};

/// `losses` holds 2 * rows doubles.
struct CrossEntropyArgs {
  const float* logits = nullptr;
  Integers labels;
  std::int64_t classes = 0, ignore_index = -100;
  double* losses = nullptr;
  float* sum = nullptr;
  float* count = nullptr;
  Extent rows;
  Fault fault;
};

struct CrossEntropyGradientArgs {
  const float* dsum = nullptr;
  const float* logits = nullptr;
  Integers labels;
  std::int64_t classes = 0, ignore_index = -100;
  float* dlogits = nullptr;
  Extent rows;
  Fault fault;
};

/// sum and count of the squared differences; `scratch` holds kSquaredErrorBlocks doubles.
inline constexpr int kSquaredErrorBlocks = 256;
struct SquaredErrorArgs {
  const float* prediction = nullptr;
  const float* target = nullptr;
  float* sum = nullptr;
  float* count = nullptr;
  double* scratch = nullptr;
  Extent elements;
};
struct SquaredErrorGradientArgs {
  const float* dsum = nullptr;
  const float* prediction = nullptr;
  const float* target = nullptr;
  float* dx = nullptr;
  Extent elements;
};

inline constexpr int kMostTables = 3;
struct EmbeddingArgs {
  std::int32_t num_tables = 1;
  Integers ids[kMostTables];
  const float* tables[kMostTables] = {};
  std::int64_t table_rows[kMostTables] = {};
  float* y = nullptr;
  std::int64_t n = 0;
  Extent rows;
  Fault fault;
};

/// Sums of the dy rows of each id. Dense (`places` null): y[id] = base[id] + sum. Otherwise y has a
/// row for each token in the order of their ids: the sum at the first of an id, whose number is
/// places[id], and zeros at the others; places is -1 where an id does not occur, and `used` counts
/// the rows. `order` holds rows integers, `partial` rows / kTokenSegment + 1 rows of n.
inline constexpr std::int64_t kTokenSegment = 32;
struct EmbeddingGradientArgs {
  const float* dy = nullptr;
  Integers ids;
  const float* base = nullptr;
  float* y = nullptr;
  std::int32_t* places = nullptr;
  std::int32_t* used = nullptr;
  std::int32_t* order = nullptr;
  float* partial = nullptr;
  std::int64_t table_rows = 0, n = 0;
  Extent rows;
  Fault fault;
};
inline constexpr int kMostGradients = 4;
struct EmbeddingGradientsArgs {
  std::int32_t count = 0;
  EmbeddingGradientArgs tables[kMostGradients];
};

/// The same of a table of few rows, left in kSmallTableParts parts: parts[part, id] = sum.
inline constexpr std::int64_t kSmallTable = 32, kSmallTableParts = 128;
struct SmallTableGradientArgs {
  const float* dy = nullptr;
  Integers ids;
  float* parts = nullptr;
  std::int64_t table_rows = 0, n = 0;
  Extent rows;
  Fault fault;
};

/// Rows of `bytes` bytes: y[i] = x[indices[i]].
struct GatherRowsArgs {
  const void* x = nullptr;
  Integers indices;
  void* y = nullptr;
  std::int64_t bytes = 0, x_rows = 0;
  Extent rows;
  Fault fault;
};

/// One row of each sequence of a packed batch, or back into rows of zeros.
struct SelectArgs {
  bool is_gradient = false;
  const void* x = nullptr;
  Integers offsets;
  void* y = nullptr;
  std::int64_t bytes = 0, index = 0;
  Extent tokens, sequences;
  Fault fault;
};

/// The last marked token of each row of [rows, length], or back into zeros.
struct LastTokenArgs {
  bool is_gradient = false;
  const void* x = nullptr;
  Integers mask;
  void* y = nullptr;
  std::int64_t bytes = 0, length = 0;
  Extent rows;
};

/// Numbers that describe packed batches, several in one launch.
struct IndexOperation {
  enum class Kind : std::int32_t { Position, Example, Share, Fill, Select };
  Kind kind = Kind::Position;
  Integers offsets = {};
  Integers values = {};  ///< of Example and Select
  void* y = nullptr;     ///< float for Share
  bool is_wide = false;
  std::uint32_t pattern = 0;           ///< of Fill
  std::int64_t index = 0;              ///< of Select, negative: counted from the end
  Extent tokens = {}, sequences = {};  ///< of y: the sequences for Select, else the tokens
  Fault fault = {};
};
inline constexpr int kMostIndices = 8;
struct IndexArgs {
  std::int32_t count = 0;
  IndexOperation operations[kMostIndices];
};

struct PositionsArgs {
  void* y = nullptr;
  bool is_wide = false;
  std::int64_t length = 0;
  Extent count;
};

struct RopeArgs {
  const float* x = nullptr;
  Integers positions;
  float* y = nullptr;
  std::int64_t heads = 0, half = 0;
  bool is_interleaved = false;
  double theta = 0, direction = 1;
  Extent rows;
};

struct DropoutArgs {
  const float* x = nullptr;
  const std::int32_t* random = nullptr;  ///< {seed low, seed high, step}
  Integers examples, positions;
  float* y = nullptr;
  std::uint32_t threshold = 0, site = 0;
  float scale = 1;
  std::int64_t n = 0;
  Extent rows;
};

/// Attention of packed sequences (offsets) or of rows of one length (lq, lk).
struct AttentionShape {
  Precision precision = Precision::Float32;
  /// How q, k, v, y and their gradients lie in memory: F32, or BF16 where the precision is Bf16.
  /// The numbers are the same: what is rounded to bfloat16 may lie as float.
  Number elements = Number::F32;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  /// Elements from one row to the next of q, of k and v, and of their gradients; 0: heads * d and
  /// kv_heads * d. One product may have made all three side by side.
  std::int64_t q_stride = 0, k_stride = 0;
  Integers mask;     ///< [rows, lk], or null
  Integers offsets;  ///< null: padded
  const std::int32_t* random = nullptr;
  Integers examples;
  std::uint32_t threshold = 0, site = 0;
  float dropout_scale = 1;
  std::int32_t heads = 1, kv_heads = 1, d = 0;
  float scale = 1;
  bool is_causal = false;
  bool only_first = false;  ///< packed, one query a sequence: its first token's
  std::int64_t lq = 0, lk = 0;
  Extent queries, keys;  ///< rows of q and of k
  Extent sequences;
  Fault fault;
};
/// For each query and head, what the gradient reads again: the largest score times log2(e), and
/// one over the sum of the others' distances to it as powers of two.
inline constexpr std::int64_t kAttentionStatistics = 2;
struct AttentionArgs {
  AttentionShape shape;
  void* y = nullptr;
  float* statistics = nullptr;  ///< null: nobody asks
  float* scratch = nullptr;     ///< attention_scratch bytes
};
struct AttentionGradientArgs {
  AttentionShape shape;
  const void* dout = nullptr;
  const void* y = nullptr;
  const float* statistics = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  float* scratch = nullptr;  ///< attention_gradient_scratch bytes
};
inline constexpr std::int64_t kAttentionTile = 64;  ///< queries or keys of a block
/// One query a sequence: tiles of keys are apart until the end, and each leaves two numbers and a
/// sum of values for each head.
inline constexpr std::int64_t attention_scratch(std::int64_t keys, std::int64_t sequences,
                                                std::int64_t heads, std::int64_t d) {
  return (keys / kAttentionTile + sequences) * heads * (d + 2) *
         static_cast<std::int64_t>(sizeof(float));
}
/// Every so many-th tile of keys of a sequence adds to the same sum of dq, and these parts are
/// added at the end, in order: few for large batches, which have blocks enough.
inline constexpr std::int64_t kMostQueryParts = 16, kLeastQueryParts = 4;
inline constexpr std::int64_t kQueryPartsBytes = std::int64_t{1} << 26;
inline constexpr std::int64_t query_part_bytes(const std::int64_t queries, std::int64_t heads,
                                               std::int64_t d) {
  return queries * heads * d * static_cast<std::int64_t>(sizeof(float));
}
inline constexpr std::int64_t num_query_parts(std::int64_t queries, std::int64_t sequences,
                                              std::int64_t heads, std::int64_t kv_heads,
                                              std::int64_t d) {
  constexpr std::int64_t kBlocks = 264;  // two for each multiprocessor of the largest GPUs
  const std::int64_t each = query_part_bytes(queries, heads, d);
  std::int64_t most = each == 0 ? kMostQueryParts : kQueryPartsBytes / each;
  most = most > kMostQueryParts ? kMostQueryParts : most;
  most = most < kLeastQueryParts ? kLeastQueryParts : most;
  const std::int64_t chains = sequences * kv_heads;
  const std::int64_t wanted = chains == 0 ? 1 : (kBlocks + chains - 1) / chains;
  return wanted < most ? wanted : most;
}
/// Four numbers for each query and head, and num_query_parts of this size or of any smaller one.
inline constexpr std::int64_t attention_gradient_scratch(std::int64_t queries, std::int64_t keys,
                                                         std::int64_t sequences, std::int64_t heads,
                                                         std::int64_t d) {
  const std::int64_t each = query_part_bytes(queries, heads, d);
  const std::int64_t many = kMostQueryParts * each, few = kLeastQueryParts * each;
  const std::int64_t parts = many < kQueryPartsBytes ? many : kQueryPartsBytes;
  const std::int64_t facts = queries * heads * 4 * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t several = (parts < few ? few : parts) + facts;
  const std::int64_t single = attention_scratch(keys, sequences, heads, d);
  return several < single ? single : several;
}
inline constexpr std::int32_t kMostHeadSize = 128;

/// One tensor of a launch over all parameters. Null places: the gradient is as large as the
/// parameter; else it is rows of n, places[row] saying which, -1 none.
struct UpdatedTensor {
  const float* param = nullptr;
  const float* gradient = nullptr;
  const float* m = nullptr;  ///< sgd: the velocity
  const float* v = nullptr;
  float* new_param = nullptr;
  float* new_m = nullptr;
  float* new_v = nullptr;
  const std::int32_t* places = nullptr;
  std::int64_t n = 0;
  std::int64_t count = 0;
  std::int64_t first_block = 0;  ///< of the launch
  const float* rate = nullptr;
  const float* scale = nullptr;
  const std::int32_t* random = nullptr;  ///< adamw: random[2] is the step
  double beta1 = 0, beta2 = 0, eps = 0;  ///< sgd: beta1 is the momentum
  double weight_decay = 0;
};
inline constexpr std::int64_t kUpdateBlock = 4096;  ///< elements a block of threads updates
struct UpdateArgs {
  bool is_adamw = true;
  const UpdatedTensor* tensors = nullptr;  ///< in device memory
  std::int32_t num_tensors = 0;
  std::int64_t num_blocks = 0;
};

/// The sum of squares of several tensors, one launch for the parts and one for the totals.
struct SquaredTensor {
  const float* x = nullptr;
  const std::int32_t* used_rows = nullptr;  ///< how many rows of n count; null: all elements
  std::int64_t n = 0;
  Extent count;
  std::int64_t first_block = 0;
  float* sum = nullptr;
};
struct SumSquaresArgs {
  const SquaredTensor* tensors = nullptr;  ///< in device memory
  std::int32_t num_tensors = 0;
  std::int64_t num_blocks = 0;  ///< of kUpdateBlock elements at capacity
  double* parts = nullptr;      ///< one a block
};

/// Operations on single numbers, one after another in one thread.
struct ScalarOperation {
  enum class Kind : std::int32_t { Map, Pair, Fill, GradientScale };
  Kind kind = Kind::Pair;
  Map map = Map::Identity;
  Pair pair = Pair::Add;
  /// Earlier operations that make the operands, which are not read from memory then; -1: none.
  std::int32_t a_from = -1, b_from = -1;
  double value = 0;  ///< Fill, the slope of a map, the largest norm
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;
  float* norm = nullptr;  ///< GradientScale: y is what gradients are multiplied by
};
inline constexpr int kMostScalars = 1024;
struct ScalarArgs {
  const ScalarOperation* operations = nullptr;  ///< in device memory
  std::int32_t count = 0;
};

/// C[m, n] = op(A) . op(B) + beta * C, column-major as cuBLAS has it; bias of length m.
struct GemmArgs {
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  float* c = nullptr;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t batches = 1, stride_a = 0, stride_b = 0, stride_c = 0;
  const float* bias = nullptr;
  Precision precision = Precision::Float32;  ///< with Bf16, a and b are bfloat16 in memory
};

/// One of the products of a launch, row by row: c[m, n] = a(m, k) . b(k, n), and what follows it.
/// It gives zeros beyond the real m, and stops at the real k.
struct Product {
  const float* a = nullptr;
  const float* b = nullptr;
  bool a_by_k = false;  ///< a lies as [k, m]; else as [m, k]
  bool b_by_k = false;  ///< b lies as [k, n]; else as [n, k]
  std::int64_t n = 0;
  Extent m, k;
  const float* bias = nullptr;    ///< n of them, added to each row
  const float* before = nullptr;  ///< as c: it is multiplied by map'(before)
  const float* residual = nullptr;
  float* c = nullptr;  ///< the sums with their bias; null where nobody reads them
  float* y = nullptr;  ///< map(c) + residual; null where nobody reads it
  Map map = Map::Identity;
  /// More than one: k is cut into that many ranges, and c is [parts, m, n], to be added up by
  /// `add_parts`. Nothing else may follow such a product.
  std::int32_t parts = 1;
  float* sums = nullptr;   ///< [parts, m], the sums of a over k where a lies as [k, m]
  bool is_rounded = true;  ///< with Bf16: c is a product's result; else a gradient that stays float
  std::int64_t first_block = 0;  ///< of the launch
};
/// Parts for sums over so many rows.
inline constexpr std::int64_t product_parts(std::int64_t rows) {
  const std::int64_t parts = rows / 256;
  return parts < 1 ? 1 : parts > 32 ? 32 : parts;
}
/// Rows of m up to which tiles are small, so that there are many of them.
inline constexpr std::int64_t kFewRows = 64;
inline constexpr bool has_small_tiles(const Product& product) {
  return !product.a_by_k && product.m.capacity <= kFewRows;
}
/// Blocks of threads that a product takes.
inline constexpr std::int64_t product_blocks(const Product& product) {
  if (has_small_tiles(product)) return (product.m.capacity + 15) / 16 * ((product.n + 15) / 16);
  return (product.m.capacity + 63) / 64 * ((product.n + 63) / 64) * product.parts;
}
struct ProductArgs {
  Precision precision = Precision::Float32;
  const Product* products = nullptr;  ///< in device memory
  std::int32_t count = 0;
  std::int64_t num_blocks = 0;
};

/// Sums that others have left in parts: y[i] = the sum of parts[p, i], in order.
struct SummedParts {
  const float* parts = nullptr;
  std::int32_t num_parts = 0;
  std::int64_t count = 0;
  float* y = nullptr;
  std::int64_t first_block = 0;  ///< of the launch
};
inline constexpr std::int64_t kPartsBlock = 128;  ///< sums that a block of threads makes
struct AddPartsArgs {
  const SummedParts* sums = nullptr;  ///< in device memory
  std::int32_t count = 0;
  std::int64_t num_blocks = 0;
};

/// y = map(y + bias) + residual in place, rows beyond the real ones zero.
struct EpilogueArgs {
  float* y = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  Map map = Map::Identity;
  std::int64_t n = 0;
  Extent rows;
  bool is_rounded = false;  ///< y is rounded to bfloat16 before the map
};

/// Copies of floats rounded to bfloat16, all in one launch.
struct HalfCopy {
  const float* x = nullptr;
  std::uint16_t* y = nullptr;
  std::int64_t count = 0;
  std::int64_t first_block = 0;  ///< of the launch
};
inline constexpr std::int64_t kHalvesBlock = 4096;  ///< elements a block of threads copies
struct HalvesArgs {
  const HalfCopy* copies = nullptr;  ///< in device memory
  std::int32_t count = 0;
  std::int64_t num_blocks = 0;
};

/// Rounds rows of a matrix to a number format: a ScaledSpec (numerics/scaled_format.h) as plain
/// numbers, for the codec headers that both sides compile.
enum class Codec : std::int32_t { Integer, Minifloat, Levels };
enum class ScaleBy : std::int32_t {
  Constant,
  Given,
  GivenPowerOfTwo,
  SharedExponent,
  LargestMagnitude,
  Range
};
struct QuantizeArgs {
  Codec codec = Codec::Integer;
  std::int32_t bits = 8;
  std::int64_t low = -127, high = 127, zero = 0;
  std::int32_t exponent_bits = 4, mantissa_bits = 3, bias = 7, specials = 0;
  bool overflows = false;
  float levels[16] = {}, thresholds[16] = {};
  ScaleBy rule = ScaleBy::Constant;
  float element_step = 1, divisor = 1;
  bool by_reciprocal = false;
  std::int32_t highest_exponent = 0, lowest_code = 0;
  std::uint32_t round_up = 0;
  const float* scales = nullptr;
  const float* zeros = nullptr;
  bool has_one_scale = false;  ///< for the whole tensor; else one for each block
  std::int64_t block = 0;      ///< columns that a scale covers
  /// Rows that a scale made of its own values covers: more than one for tiles, 0 for all rows, of
  /// which `parts` then holds kScaleParts.
  std::int64_t block_rows = 1;
  struct ScalePart* parts = nullptr;
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t columns = 0;
  Extent rows;
  std::int64_t first_block = 0;  ///< of a launch of several
};
/// Tensors whose rows are rounded one by one, all in one launch.
inline constexpr std::int64_t kQuantizeBlock =
    32;  ///< rows or blocks of one a block of threads has
struct QuantizeAllArgs {
  const QuantizeArgs* tensors = nullptr;  ///< in device memory
  std::int32_t count = 0;
  std::int64_t num_blocks = 0;
};

/// What a scale is made of, of some of the values that it covers.
struct ScalePart {
  std::uint32_t largest = 0;          ///< bits without sign, NaN included
  float most = 0, low = 0, high = 0;  ///< of finite values: the largest magnitude, and the range
};
inline constexpr int kScaleParts = 256;

/// Rounds to plus or minus mean magnitudes (numerics/term_format.h and mase/terms.cpp).
struct TermArgs {
  enum class Kind : std::int32_t { Signs, Ternary, MasePositive, MaseTernary };
  Kind kind = Kind::Signs;
  std::int32_t terms = 1;       ///< Signs
  bool is_unit = false;         ///< Signs: they are plus and minus 1
  float threshold = 0;          ///< Ternary and MaseTernary: times the mean, what is 0
  std::int32_t num_phases = 0;  ///< means to be made one after another
  bool is_whole = false;        ///< one scale for all; else one for each row
  const float* x = nullptr;
  const float* mask = nullptr;  ///< null: all values count
  float* y = nullptr;
  std::int64_t columns = 0;
  Extent rows;
  std::int64_t num_chunks = 0;   ///< is_whole: of numerics::SumOrder::kChunk values
  std::byte* scratch = nullptr;  ///< is_whole: term_scratch(num_chunks) bytes
};
inline constexpr int kMostTermAlphas = 8;
inline constexpr std::int64_t kTermHeader = 128;
inline constexpr std::int64_t term_scratch(std::int64_t num_chunks) {
  return kTermHeader + 2 * num_chunks * 16;
}

/// MASE's quantizers of single values and of blocks.
struct MaseArgs {
  numerics::MaseTable table;
  bool has_blocks = false;
  std::int64_t block_rows = 1, block = 0;
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t columns = 0;
  Extent rows;
};

/// A step of a row program, on registers that each hold one row of n floats.
struct RowInstruction {
  enum class Kind : std::int32_t {
    Load,               ///< to = memory[row]
    LoadOfSequence,     ///< to = memory[token `index` of sequence row]
    LoadForToken,       ///< to = memory[s] where the row is token `index` of sequence s, else zeros
    Embed,              ///< to = table[ids[row]], + a where that is a register
    Store,              ///< memory[row] = a
    StoreHalf,          ///< the same as bfloat16
    Round,              ///< to = a rounded to bfloat16
    AddVector,          ///< to = a + memory, the same for every row
    Map,                ///< to = map(a)
    MapGradient,        ///< to = a * map'(b)
    Pair,               ///< to = pair(a, b)
    Gate,               ///< to = a where b lies in low to high, else 0
    Dropout,            ///< to = a, dropped by example and position
    Normalize,          ///< to = (a - mean) * rate * gamma + beta
    NormalizeGradient,  ///< to = the gradient of a norm of b, given a; sums of a * h and of a
    Sum,                ///< sums of a
    Quantize,           ///< to = a in a number format
  };
  Kind kind = Kind::Load;
  std::int32_t to = -1, a = -1, b = -1;  ///< registers
  Map map = Map::Identity;
  Pair pair = Pair::Add;
  std::int32_t format = 0;             ///< of the program's
  std::int32_t sum = 0;                ///< the first of its sums among the program's
  float slope = 0, low = 0, high = 0;  ///< low: eps of a norm
  bool is_rms = false;
  std::uint32_t threshold = 0, site = 0;
  float scale = 1;  ///< of what is not dropped
  const std::int32_t* random = nullptr;
  const float* memory = nullptr;  ///< gamma of a norm
  const float* second = nullptr;  ///< beta
  void* result = nullptr;
  Integers ids = {}, positions = {};  ///< ids, examples, offsets
  std::int64_t index = 0;             ///< negative: counted from the end
  std::int64_t table_rows = 0;
  Extent others = {};          ///< tokens, or sequences: what the rows are not
  float* sums = nullptr;       ///< [parts, n]
  float* more_sums = nullptr;  ///< of a norm: those of a
  Fault fault = {};
};
inline constexpr int kMostInstructions = 32, kMostRowFormats = 4;
inline constexpr std::int64_t kWidestRow = 4096;
/// Parts that the sums of a row program over so many rows are left in, for `add_parts`.
inline constexpr std::int32_t kMostRowParts = 256;
inline constexpr std::int32_t row_parts(std::int64_t capacity) {
  const std::int64_t parts = (capacity + 15) / 16;
  return static_cast<std::int32_t>(parts < 1 ? 1 : parts > kMostRowParts ? kMostRowParts : parts);
}
/// Instructions one after another for each row, the rows side by side; n is a multiple of four.
struct RowProgramArgs {
  std::int64_t n = 0;
  Extent rows;
  std::int32_t count = 0, num_registers = 0, num_sums = 0;
  RowInstruction instructions[kMostInstructions];
  QuantizeArgs formats[kMostRowFormats];
};

/// dx and dscale of a quantize whose scale is given; `parts` holds a double for each row and block.
struct LearnedStepArgs {
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* y = nullptr;
  const float* scales = nullptr;
  const float* zeros = nullptr;
  bool is_power_of_two = false, has_one_scale = false;
  double minimum = 0, maximum = 0;  ///< places that are not clipped
  double factor = 1;
  std::int64_t block = 0, columns = 0;
  float* dx = nullptr;
  float* dscale = nullptr;
  double* parts = nullptr;
  Extent rows;
};

/// y = from where x is kept, else 0: of each row the `count` smallest magnitudes of x go, ties by
/// index.
struct PruneValuesArgs {
  const float* x = nullptr;
  const float* from = nullptr;
  float* y = nullptr;
  std::int64_t count = 0, columns = 0;
  Extent rows;
};

struct GateArgs {
  const float* dy = nullptr;
  const float* x = nullptr;
  float* dx = nullptr;
  float minimum = 0, maximum = 0;
  Extent count;
};

/// Numbers that lie packed: rows of codes, each a little-endian bit stream, and their scales.
struct PackedMatrix {
  /// The format; of its operands only `scales` and `zeros`, which were handed in, are read, and
  /// `columns` and `block` as there.
  QuantizeArgs format;
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* local = nullptr;  ///< scales that the format made itself
  std::int32_t local_bytes = 0;         ///< of each of them
  std::int64_t row_bytes = 0;           ///< of a row's codes
  std::int64_t block_rows = 1;          ///< rows that a scale covers
  std::int64_t rows = 0;
};

/// y = the numbers of all rows; with indices those of rows[indices[i]].
struct DecodeArgs {
  PackedMatrix packed;
  Integers indices;
  Number to = Number::F32;  ///< or BF16, rounded to nearest even
  void* y = nullptr;
  Extent rows;
  Fault fault;
};

/// MXINT8 to bfloat16 or float by tiles, one for each block of `threads` threads, which copy runs
/// of codes in turn. A tile of 0: as is fastest.
struct TileShape {
  std::int32_t rows = 0, columns = 0, threads = 0;
};
/// The tiles that there are, the fastest first.
inline constexpr TileShape kTileShapes[] = {
    {8, 512, 256}, {1, 4096, 256}, {4, 1024, 256}, {8, 512, 128}, {8, 512, 512}, {8, 128, 128},
    {16, 64, 128}, {32, 32, 128},  {32, 128, 256}, {64, 64, 256}, {64, 16, 128}, {128, 128, 1024}};
/// Codes of a run: 16 bytes of results.
inline constexpr std::int32_t run_of_tile(Number to) {
  return to == Number::F32 ? 4 : 8;
}
struct DequantizeArgs {
  TileShape tile;
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* exponents = nullptr;
  Number to = Number::BF16;
  void* y = nullptr;
  std::int64_t rows = 0, columns = 0;  ///< columns: a multiple of the group
  std::int32_t group = 32;             ///< a power of two, at least a run
};

/// How the codes of a weight become the operand of a tensor core, which has 8 significant bits.
enum class PackedCode : std::int32_t { Int8, Int4, Unsigned4, E4m3, E5m2, E2m1 };

/// y[rows, n] = map(x[rows, k] . weight^T + bias) + residual, the weight read as it is packed.
///
/// Codes times the activations' terms are exact in the tensor cores' products, scales are applied
/// to the sums of a group. With `encodes`, activations become MXINT8 blocks of the weight's group
/// and products and sums of a group are whole numbers.
struct PackedLinearArgs {
  PackedCode code = PackedCode::Int8;
  PackedMatrix weight;
  std::int64_t n = 0, k = 0;
  const float* x = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  Map map = Map::Identity;
  bool encodes = false;
  Precision precision = Precision::Float32;
  float* y = nullptr;
  std::byte* scratch = nullptr;  ///< packed_linear_scratch bytes
  Extent rows;
};
/// Up to so many rows a product reads packed weights once; more rows are worth decoding them.
inline constexpr std::int64_t kMostPackedRows = 16;
/// Terms of bfloat16 whose sum an activation is: 24 bits are three times 8.
inline constexpr std::int64_t num_terms(Precision precision) {
  return precision == Precision::Float32 ? 3 : precision == Precision::Tf32 ? 2 : 1;
}
inline constexpr std::int64_t packed_linear_scratch(const PackedLinearArgs& args) {
  if (args.encodes) return args.rows.capacity * args.k * 2;  // codes, and scales behind them
  // Columns in tiles of 16, or of 24 for three terms: at most 23 more than there are.
  return (args.rows.capacity * num_terms(args.precision) + 24) * args.k * 2;
}

/// Rows of a sum that one block of threads adds up; follows from the capacity alone.
inline constexpr std::int64_t rows_of_chunk(std::int64_t capacity) {
  const std::int64_t rows = (capacity + 127) / 128;
  return rows < 32 ? 32 : rows;
}
inline constexpr std::int64_t num_row_chunks(std::int64_t capacity) {
  const std::int64_t rows = rows_of_chunk(capacity);
  return capacity == 0 ? 1 : (capacity + rows - 1) / rows;
}

struct DeviceFacts {
  char name[256] = {};
  std::int32_t major = 0, minor = 0, multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::int32_t driver = 0, runtime = 0;  ///< 13000 is 13.0
};

/// Functions that can fail return null, or one line that says why; it is valid until the thread
/// calls another.
struct Device {
  const char* (*open)(std::int32_t index, DeviceFacts*);
  const char* (*allocate)(std::int64_t bytes, void**);
  void (*release)(void*);
  const char* (*allocate_pinned)(std::int64_t bytes, void**);
  void (*release_pinned)(void*);
  const char* (*make_stream)(Stream**);
  void (*drop_stream)(Stream*);
  const char* (*synchronize)(Stream*);
  const char* (*copy)(void* to, const void* from, std::int64_t bytes, Stream*);
  const char* (*fill)(void* to, std::int32_t byte, std::int64_t bytes, Stream*);
  const char* (*begin_capture)(Stream*);
  const char* (*end_capture)(Stream*, Capture**, std::int32_t* num_nodes);
  const char* (*launch)(Capture*, Stream*);
  void (*drop_capture)(Capture*);
  const char* (*launch_error)();
  const char* (*make_gemm)(Stream*, Gemm**);
  void (*drop_gemm)(Gemm*);
};

struct KernelTable {
  std::int32_t version;
  Device device;
  const char* (*gemm)(Gemm*, const GemmArgs&, Stream*);
  void (*products)(const ProductArgs&, Stream*);
  void (*add_parts)(const AddPartsArgs&, Stream*);
  /// The program a second time in device memory, where its instructions are read.
  void (*row_program)(const RowProgramArgs&, const RowProgramArgs* on_device, Stream*);
  void (*halves)(const HalvesArgs&, Stream*);
  void (*epilogue)(const EpilogueArgs&, Stream*);
  void (*map)(const MapArgs&, Stream*);
  void (*map_gradient)(const MapGradientArgs&, Stream*);
  void (*pair)(const PairArgs&, Stream*);
  void (*pair_gradient)(const PairGradientArgs&, Stream*);
  void (*copy)(const CopyArgs&, Stream*);
  void (*fill)(const FillArgs&, Stream*);
  void (*cast)(const CastArgs&, Stream*);
  void (*scalars)(const ScalarArgs&, Stream*);
  void (*reduce)(const ReduceArgs&, Stream*);
  void (*max_gradient)(const MaxGradientArgs&, Stream*);
  void (*sum_rows)(const SumRowsArgs&, Stream*);
  void (*softmax)(const SoftmaxArgs&, Stream*);
  void (*normalize)(const NormalizeArgs&, Stream*);
  void (*normalize_gradient)(const NormalizeGradientArgs&, Stream*);
  void (*cross_entropy)(const CrossEntropyArgs&, Stream*);
  void (*cross_entropy_gradient)(const CrossEntropyGradientArgs&, Stream*);
  void (*squared_error)(const SquaredErrorArgs&, Stream*);
  void (*squared_error_gradient)(const SquaredErrorGradientArgs&, Stream*);
  void (*embedding)(const EmbeddingArgs&, Stream*);
  void (*embedding_gradients)(const EmbeddingGradientsArgs&, Stream*);
  void (*small_table_gradient)(const SmallTableGradientArgs&, Stream*);
  void (*gather_rows)(const GatherRowsArgs&, Stream*);
  void (*select)(const SelectArgs&, Stream*);
  void (*last_token)(const LastTokenArgs&, Stream*);
  void (*indices)(const IndexArgs&, Stream*);
  void (*positions)(const PositionsArgs&, Stream*);
  void (*rope)(const RopeArgs&, Stream*);
  void (*dropout)(const DropoutArgs&, Stream*);
  void (*attention)(const AttentionArgs&, Stream*);
  void (*attention_gradient)(const AttentionGradientArgs&, Stream*);
  void (*update)(const UpdateArgs&, Stream*);
  void (*sum_squares)(const SumSquaresArgs&, Stream*);
  void (*gate)(const GateArgs&, Stream*);
  void (*prune_values)(const PruneValuesArgs&, Stream*);
  void (*quantize)(const QuantizeArgs&, Stream*);
  void (*quantize_all)(const QuantizeAllArgs&, Stream*);
  void (*quantize_terms)(const TermArgs&, Stream*);
  void (*quantize_mase)(const MaseArgs&, Stream*);
  void (*learned_step)(const LearnedStepArgs&, Stream*);
  void (*decode)(const DecodeArgs&, Stream*);
  bool (*dequantize)(const DequantizeArgs&, Stream*);  ///< false: there is no such tile
  void (*packed_linear)(const PackedLinearArgs&, Stream*);
  /// What bandwidth is measured against; whole 16 bytes.
  void (*stream_copy)(void* to, const void* from, std::int64_t bytes, Stream*);
  const char* (*free_memory)(std::int64_t* free, std::int64_t* total);
};

/// The only symbol of the library.
using TableFunction = const KernelTable* (*)();
inline constexpr const char* kTableSymbol = "lathe_cuda_kernels";

}  // namespace lathe::engine::cuda
