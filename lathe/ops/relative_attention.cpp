#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/core/op.h"
#include "lathe/ops/attention_weights.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/relative_buckets.h"
#include "lathe/ops/sequence_offsets.h"
#include "lathe/ops/underflow.h"

// relative_attention(q, k, v, mask, offsets, position_keys[2s,n], position_queries[2s,n]) {heads,
// scale, buckets, max_distance}: disentangled attention (He et al. 2021).
//
// As attention of as many keys as queries, with a score that also tells how far apart they are:
//   score[i,j] = scale * (dot(q[i], k[j]) + dot(q[i], position_keys[r]) +
//                         dot(k[j], position_queries[r])),
// heads apart, where r is the row of distance i - j (relative_buckets.h). Either table may be
// absent, and its term then is.
namespace lathe::ops::relative_attention {
namespace {

constexpr std::size_t kPositionKeys = 5, kPositionQueries = 6;
constexpr double kLowest = -std::numeric_limits<double>::infinity();

void check_buckets(const AttributeReader& attributes) {
  const std::int64_t buckets = attributes.integer("buckets");
  const std::int64_t max_distance = attributes.integer("max_distance");
  if (buckets < 0 || buckets == 1 || buckets > 1024)
    fail("relative_attention: {} buckets, expected 0 or 2 to 1024", buckets);
  if (buckets > 0 && max_distance <= buckets / 2 + 1)
    fail("relative_attention: max_distance {} leaves nothing beyond the {} nearest", max_distance,
         buckets / 2);
}

std::vector<Type> infer(const OpCall& call) {
  const Type& q = call.input(kQuery);
  require_floating("relative_attention", call, kQuery);
  if (q.rank() != 2 && q.rank() != 3)
    fail("relative_attention needs queries [B,L,n] or packed [T,n], not {}", to_text(q));
  for (const std::size_t other : {kKey, kValue})
    if (call.input(other) != q)
      fail("relative_attention: {} and {} differ: expected as many queries, keys and values",
           to_text(q), to_text(call.input(other)));
  const std::int64_t heads = call.attributes().integer("heads");
  const std::int64_t width = constant_size("relative_attention", q.axis(-1), q);
  if (heads < 1 || width % heads != 0)
    fail("relative_attention: the last axis of {} does not divide into {} heads", to_text(q),
         heads);
  check_buckets(call.attributes());
  if (q.rank() == 2) {
    if (!call.has(kOffsets)) fail("relative_attention on packed {} needs offsets", to_text(q));
    if (call.has(kMask)) fail("relative_attention on packed {} takes no mask", to_text(q));
    require_offsets(call.input(kOffsets));
  } else {
    if (call.has(kOffsets)) fail("relative_attention: offsets belong to packed queries [T,n]");
    if (call.has(kMask)) {
      require_integer("relative_attention", "mask", call.input(kMask));
      if (call.input(kMask).shape != Shape{q.axis(0), q.axis(1)})
        fail("relative_attention: mask {} does not fit keys {}", to_text(call.input(kMask)),
             to_text(q));
    }
  }
  for (const std::size_t table : {kPositionKeys, kPositionQueries}) {
    if (!call.has(table)) continue;
    const Type& type = call.input(table);
    require_rank("relative_attention", "positions", type, 2);
    require_same_dtype("attend with", q, type);
    if (type.axis(1) != q.axis(-1) || !type.axis(0).is_constant() ||
        type.axis(0).constant() % 2 != 0 || type.axis(0).constant() == 0)
      fail("relative_attention: positions {} do not fit {}: expected an even number of rows of {}",
           to_text(type), to_text(q), width);
    if (call.has(kPositionKeys) && type != call.input(kPositionKeys))
      fail("relative_attention: positions {} and {} differ", to_text(call.input(kPositionKeys)),
           to_text(type));
  }
  if (!call.has(kPositionKeys) && !call.has(kPositionQueries))
    fail("relative_attention needs keys or queries of positions: without them it is attention");
  return {{.dtype = q.dtype, .shape = q.shape}};
}

// Queries by keys and weights by values, and with each table of positions queries or keys by it.
Size flops(const OpCall& call) {
  const Type& q = call.input(kQuery);
  const Size keys = q.rank() == 3 ? q.axis(1) : Size::symbol("L");
  Size total = Size(4) * q.num_elements() * keys;
  for (const std::size_t table : {kPositionKeys, kPositionQueries})
    if (call.has(table)) total += Size(2) * q.num_elements() * call.input(table).axis(0);
  return total;
}

void reference(const KernelCall& call) {
  const std::int64_t heads = call.attributes.integer("heads");
  const std::int64_t width = call.input(kQuery).dims().back(), size = width / heads;
  const double written = call.attributes.real("scale");
  const double scale = written == 0 ? 1 / std::sqrt(static_cast<double>(size)) : written;
  const std::vector<double> q = read_elements(call.input(kQuery));
  const std::vector<double> k = read_elements(call.input(kKey));
  const std::vector<double> v = read_elements(call.input(kValue));
  const auto elements = [&](std::size_t operand) {
    return call.has(operand) ? read_elements(call.input(operand)) : std::vector<double>();
  };
  const std::vector<double> mask = elements(kMask), keys = elements(kPositionKeys),
                            queries = elements(kPositionQueries);
  const RelativeBuckets buckets = RelativeBuckets::of(
      call.attributes,
      call.input(call.has(kPositionKeys) ? kPositionKeys : kPositionQueries).dim(0));
  const auto dot = [&](const std::vector<double>& a, std::int64_t a_row,
                       const std::vector<double>& b, std::int64_t b_row, std::int64_t head) {
    double sum = 0;
    for (std::int64_t d = head * size; d < (head + 1) * size; ++d)
      sum += a[static_cast<std::size_t>(a_row * width + d)] *
             b[static_cast<std::size_t>(b_row * width + d)];
    return sum;
  };
  std::vector<double> y(q.size(), 0.0), weights;
  for (const AttentionSequence& at : attention_sequences(call.inputs, true))
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t i = 0; i < at.num_queries; ++i) {
        weights.assign(static_cast<std::size_t>(at.num_keys), kLowest);
        for (std::int64_t j = 0; j < at.num_keys; ++j) {
          const std::int64_t query = at.first_query + i, key = at.first_key + j;
          if (!mask.empty() && mask[static_cast<std::size_t>(key)] == 0) continue;
          const std::int64_t row = buckets.row(i - j);
          double score = dot(q, query, k, key, head);
          if (!keys.empty()) score += dot(q, query, keys, row, head);
          if (!queries.empty()) score += dot(k, key, queries, row, head);
          weights[static_cast<std::size_t>(j)] = scale * score;
        }
        const double highest = *std::max_element(weights.begin(), weights.end());
        double sum = 0;
        for (double& weight : weights) {
          if (highest == kLowest)
            weight = 1;  // a query that keeps no key gives all the same weight
          else
            weight = weight - highest < kLowestAttentionScore ? 0.0 : std::exp(weight - highest);
          sum += weight;
        }
        for (std::int64_t j = 0; j < at.num_keys; ++j)
          for (std::int64_t d = head * size; d < (head + 1) * size; ++d)
            y[static_cast<std::size_t>((at.first_query + i) * width + d)] +=
                weights[static_cast<std::size_t>(j)] / sum *
                v[static_cast<std::size_t>((at.first_key + j) * width + d)];
      }
  write_elements(call.outputs[0], y);
}

const Register registration{Op{
    .name = "relative_attention",
    .summary = "attention whose scores also tell how far a key is, padded or packed",
    .operands = {{.name = "q", .role = OperandRole::Query},
                 {.name = "k", .role = OperandRole::Key},
                 {.name = "v", .role = OperandRole::Content},
                 {.name = "mask", .optional = true},
                 {.name = "offsets", .optional = true},
                 {.name = "position_keys", .optional = true},
                 {.name = "position_queries", .optional = true}},
    .attributes =
        {{.name = "heads", .default_value = 1, .summary = "number of heads", .required = true},
         {.name = "scale",
          .default_value = 0.0,
          .summary = "factor of the scores; 0: 1 / sqrt(head size)"},
         {.name = "buckets",
          .default_value = 0,
          .summary = "rows that far distances share by their logarithm; 0: none do"},
         {.name = "max_distance",
          .default_value = 0,
          .summary = "distance that the last bucket reaches"}},
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .is_differentiable = false,
    .pack = pack_attention,
    .examples = {"relative_attention(f32[B,L,8], f32[B,L,8], f32[B,L,8], i64[B,L], none, "
                 "f32[6,8], f32[6,8]) {heads=2}",
                 "relative_attention(f32[T,8], f32[T,8], f32[T,8], none, i32[S+1], f32[8,8]) "
                 "{heads=2, buckets=4, max_distance=16}",
                 "relative_attention(f32[B,L,8], f32[B,L,8], f32[B,L,8], none, none, none, "
                 "f32[4,8]) {heads=1, scale=0.5}"},
}};

}  // namespace
}  // namespace lathe::ops::relative_attention
