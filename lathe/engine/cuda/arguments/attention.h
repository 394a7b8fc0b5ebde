#pragma once

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cuda/arguments/operand.h"

// Attention and its gradient.
namespace lathe::engine::cuda {

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
/// A block takes the tiles of keys of one part, and a multiprocessor one block at a time, or two of
/// small heads: the number with which the last of them are done soonest, sequences being equally
/// long. Of several, the largest: real sequences are not, and short blocks even that out.
inline constexpr std::int64_t num_query_parts(std::int64_t queries, std::int64_t keys,
                                              std::int64_t sequences, std::int64_t heads,
                                              std::int64_t kv_heads, std::int64_t d) {
  constexpr std::int64_t kMultiprocessors = 132;
  const auto divide_up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t each = query_part_bytes(queries, heads, d);
  std::int64_t most = each == 0 ? kMostQueryParts : kQueryPartsBytes / each;
  most = most > kMostQueryParts ? kMostQueryParts : most;
  most = most < kLeastQueryParts ? kLeastQueryParts : most;
  if (sequences == 0) return 1;
  const std::int64_t at_once = d <= 32 ? 2 * kMultiprocessors : kMultiprocessors;
  const std::int64_t tiles = divide_up(divide_up(keys, sequences), kAttentionTile);
  std::int64_t best = 1, least = 0;
  for (std::int64_t parts = 1; parts <= most && parts <= tiles; ++parts) {
    const std::int64_t rounds = divide_up(sequences * kv_heads * parts, at_once);
    const std::int64_t time = rounds * divide_up(tiles, parts);
    if (parts > 1 && time > least) continue;
    best = parts;
    least = time;
  }
  return best;
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
/// Numbers of a head: up to the first it has tiles, up to the second kernels of its own.
inline constexpr std::int32_t kMostHeadSize = 128, kMostWideHeadSize = 256;

/// Attention whose scores also tell how far a key is (ops/relative_attention.cpp).
///
/// What the tables of positions add to scores is made before: `of_queries[i, head, r]` is query i
/// by row r of the table of keys, `of_keys[j, head, r]` is key j by row r of that of queries.
inline constexpr int kMostBucketStarts = 1024;
struct RelativeAttentionArgs {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  Integers mask;                      ///< [sequences, length], or null
  Integers offsets;                   ///< null: padded, `length` queries and keys a sequence
  const float* of_queries = nullptr;  ///< [queries, heads, table_rows], or null
  const float* of_keys = nullptr;     ///< the same
  std::int64_t table_rows = 0;
  /// Distances up to this have rows of their own; beyond, starts[i] is the first that is i + 1 rows
  /// further. Rows are counted from the middle of the table and stay inside it.
  std::int64_t near = 0;
  std::int32_t num_starts = 0;
  std::uint16_t starts[kMostBucketStarts] = {};
  std::int32_t* rows = nullptr;  ///< scratch for 2 * longest - 1
  std::int64_t longest = 0;      ///< that a sequence can be
  float* y = nullptr;
  std::int32_t heads = 1, d = 0;
  float scale = 1;
  std::int64_t length = 0;
  Extent queries, sequences;
  Fault fault;
};

/// How the queries and keys of a single token are turned by its position before they meet others.
struct TokenRotation {
  bool is_there = false, is_interleaved = false;
  Integers positions;
  double frequencies[kMostHeadSize / 2] = {};  ///< radians from a position to the next, by pair
};

/// What a cache keeps of keys and values (ops/cache_rows.h).
enum class CacheKind : std::int32_t { Float, Bf16, Int8 };

/// New tokens of packed sequences: their keys and values go into rows of the caches behind those
/// of their sequences, and their queries look at them all. The new caches may be the old ones.
struct CachedAttentionArgs {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const std::byte* k_cache = nullptr;
  const std::byte* v_cache = nullptr;
  Integers offsets, starts, lengths;
  float* y = nullptr;
  std::byte* new_k = nullptr;
  std::byte* new_v = nullptr;
  CacheKind kind = CacheKind::Float;
  std::int64_t row_bytes = 0;    ///< of the caches
  std::int64_t first_scale = 0;  ///< Int8: the byte of a row where the scales of its heads begin
  std::int32_t heads = 1, kv_heads = 1, d = 0;
  float scale = 1;
  std::int64_t rows = 0;  ///< of the caches
  Extent tokens, sequences;
  TokenRotation rotation;        ///< of one token of one sequence
  bool may_begin_early = false;  ///< such a token's inputs were there before the launch in front
  Fault fault;
};
/// Whether there is a kernel for such a token alone, which may turn it, too.
inline constexpr bool is_single_token(const CachedAttentionArgs& args) {
  return args.tokens.capacity == 1 && args.sequences.capacity == 1 && args.new_k == args.k_cache &&
         args.new_v == args.v_cache && (args.d == 32 || args.d == 64 || args.d == 128);
}

}  // namespace lathe::engine::cuda
