#include <algorithm>
#include <cmath>
#include <cstring>

#include "lathe/core/op.h"
#include "lathe/ops/cache_rows.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/sequence_offsets.h"
#include "lathe/ops/underflow.h"

// cached_attention(q[T,heads*d], k[T,kv_heads*d], v[T,kv_heads*d], k_cache[C,..], v_cache[C,..],
// offsets[S+1], starts[S], lengths[S]) {heads, kv_heads, scale}: causal attention of sequences that
// arrive in parts.
//
// The keys of sequence s lie in rows starts[s], starts[s]+1, ... of the caches, and lengths[s] of
// them are there already. Its tokens, offsets[s] to offsets[s+1], are put behind them; then token i
// of these attends to the lengths[s]+i+1 keys up to its own, as in `attention`. A whole sequence at
// once with lengths[s] = 0 is causal attention; token after token gives the same.
//
// The caches hold keys and values as their dtype says (cache_rows.h): where that rounds, a token
// attends to rounded ones, its own included.
//
// The results are what attention gives and the caches with the new rows, which a graph binds to the
// states they are: a backend then writes those rows alone.
namespace lathe::ops::cached_attention {
namespace {

constexpr std::size_t kQuery = 0, kKey = 1, kValue = 2, kKeyCache = 3, kValueCache = 4,
                      kOffsets = 5, kStarts = 6, kLengths = 7;

std::int64_t kv_heads_of(const AttributeReader& attributes) {
  const std::int64_t written = attributes.integer("kv_heads");
  return written == 0 ? attributes.integer("heads") : written;
}

CacheLayout layout_of(DType cache, std::int64_t width, const AttributeReader& attributes) {
  return {cache, kv_heads_of(attributes), width / attributes.integer("heads")};
}

std::vector<Type> infer(const OpCall& call) {
  const Type& q = call.input(kQuery);
  const Type& k = call.input(kKey);
  const Type& cache = call.input(kKeyCache);
  require_floating("cached_attention", call, kQuery);
  require_rank("cached_attention", "q", q, 2);
  require_rank("cached_attention", "k_cache", cache, 2);
  if (k != call.input(kValue) || cache != call.input(kValueCache))
    fail("cached_attention: keys {} and {} differ from values {} and {}", to_text(k),
         to_text(cache), to_text(call.input(kValue)), to_text(call.input(kValueCache)));
  require_same_dtype("attend with", q, k);
  if (!can_hold(cache.dtype, k.dtype))
    fail("cached_attention: a cache {} cannot hold keys {}", to_text(cache), to_text(k));
  const std::int64_t heads = call.attributes().integer("heads");
  const std::int64_t kv_heads = kv_heads_of(call.attributes());
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    fail("cached_attention: {} heads cannot share {} key heads evenly", heads, kv_heads);
  const std::int64_t width = constant_size("cached_attention", q.axis(-1), q);
  if (width % heads != 0)
    fail("cached_attention: the last axis of {} does not divide into {} heads", to_text(q), heads);
  const Size kv_width = width / heads * kv_heads;
  const CacheLayout layout = layout_of(cache.dtype, width, call.attributes());
  if (k.shape != Shape{q.axis(0), kv_width} || cache.axis(-1) != Size(layout.width()))
    fail("cached_attention: keys {} and {} must be rows of {} heads of {}", to_text(k),
         to_text(cache), kv_heads, width / heads);
  require_offsets(call.input(kOffsets));
  const Size sequences = num_sequences(call.input(kOffsets));
  for (const std::size_t index : {kStarts, kLengths}) {
    const char* const name = index == kStarts ? "starts" : "lengths";
    require_integer("cached_attention", name, call.input(index));
    require_vector("cached_attention", name, call.input(index), sequences);
  }
  return {{.dtype = q.dtype, .shape = q.shape}, cache, cache};
}

// Two products with every key there is room for: a bound, as what is there is only known in a run.
Size flops(const OpCall& call) {
  return Size(4) * call.input(kQuery).num_elements() * call.input(kKeyCache).axis(0);
}

void copy_bytes(const Tensor& from, Tensor& to) {
  std::memcpy(to.mutable_bytes(), from.bytes(), static_cast<std::size_t>(from.num_bytes()));
}

void reference(const KernelCall& call) {
  const std::int64_t heads = call.attributes.integer("heads");
  const std::int64_t group = heads / kv_heads_of(call.attributes);
  const std::int64_t q_width = call.input(kQuery).dim(1), k_width = call.input(kKey).dim(1);
  const std::int64_t size = q_width / heads, rows = call.input(kKeyCache).dim(0);
  const double written = call.attributes.real("scale");
  const double scale = written == 0 ? 1 / std::sqrt(static_cast<double>(size)) : written;
  const std::vector<double> q = read_elements(call.input(kQuery));
  const std::vector<double> k = read_elements(call.input(kKey));
  const std::vector<double> v = read_elements(call.input(kValue));
  const CacheLayout layout = layout_of(call.input(kKeyCache).dtype(), q_width, call.attributes);
  Tensor &k_cache = call.outputs[1], &v_cache = call.outputs[2];
  copy_bytes(call.input(kKeyCache), k_cache);
  copy_bytes(call.input(kValueCache), v_cache);
  const std::vector<std::int64_t> offsets =
      read_offsets(call.input(kOffsets), call.input(kQuery).dim(0));
  const std::vector<std::int64_t> starts = read_integers(call.input(kStarts));
  const std::vector<std::int64_t> lengths = read_integers(call.input(kLengths));
  for (std::size_t s = 0; s < starts.size(); ++s) {
    const std::int64_t count = offsets[s + 1] - offsets[s];
    if (starts[s] < 0 || lengths[s] < 0 || starts[s] + lengths[s] + count > rows)
      fail("cached_attention: sequence {} needs rows {} to {}, but the cache has {}", s, starts[s],
           starts[s] + lengths[s] + count, rows);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = starts[s] + lengths[s] + i;
      write_cache_row(k_cache, layout, row, k.data() + (offsets[s] + i) * k_width);
      write_cache_row(v_cache, layout, row, v.data() + (offsets[s] + i) * k_width);
    }
  }
  const std::vector<double> keys = read_cache(k_cache, layout),
                            values = read_cache(v_cache, layout);
  std::vector<double> y(q.size(), 0.0), weights;
  for (std::size_t s = 0; s < starts.size(); ++s)
    for (std::int64_t token = offsets[s]; token < offsets[s + 1]; ++token)
      for (std::int64_t head = 0; head < heads; ++head) {
        const double* const query = q.data() + token * q_width + head * size;
        const auto row_of = [&](const std::vector<double>& cache, std::int64_t j) {
          return cache.data() + (starts[s] + j) * k_width + head / group * size;
        };
        weights.assign(static_cast<std::size_t>(lengths[s] + token - offsets[s] + 1), 0.0);
        for (std::size_t j = 0; j < weights.size(); ++j)
          for (std::int64_t d = 0; d < size; ++d)
            weights[j] += scale * query[d] * row_of(keys, static_cast<std::int64_t>(j))[d];
        const double highest = *std::max_element(weights.begin(), weights.end());
        double sum = 0;
        for (double& weight : weights) {
          weight = weight - highest < kLowestAttentionScore ? 0.0 : std::exp(weight - highest);
          sum += weight;
        }
        for (std::size_t j = 0; j < weights.size(); ++j)
          for (std::int64_t d = 0; d < size; ++d)
            y[static_cast<std::size_t>(token * q_width + head * size + d)] +=
                weights[j] / sum * row_of(values, static_cast<std::int64_t>(j))[d];
      }
  write_elements(call.outputs[0], y);
}

const Register registration{Op{
    .name = "cached_attention",
    .summary = "causal attention of new tokens to the keys of earlier ones, which a cache holds",
    .operands = {{.name = "q", .role = OperandRole::Query},
                 {.name = "k", .role = OperandRole::Key},
                 {.name = "v", .role = OperandRole::Content},
                 {.name = "k_cache"},
                 {.name = "v_cache"},
                 {.name = "offsets"},
                 {.name = "starts"},
                 {.name = "lengths"}},
    .attributes = {{.name = "heads",
                    .default_value = 1,
                    .summary = "number of query heads",
                    .required = true},
                   {.name = "kv_heads",
                    .default_value = 0,
                    .summary = "number of key and value heads; 0: as many as query heads"},
                   {.name = "scale",
                    .default_value = 0.0,
                    .summary = "factor of the scores; 0: 1 / sqrt(head size)"}},
    .num_results = 3,
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .is_differentiable = false,
    .examples = {"cached_attention(f32[T,8], f32[T,4], f32[T,4], f32[9,4], f32[9,4], i32[S+1], "
                 "i32[S], i32[S]) {heads=4, kv_heads=2}",
                 "cached_attention(f32[T,6], f32[T,6], f32[T,6], f32[9,6], f32[9,6], i32[S+1], "
                 "i32[S], i32[S]) {heads=1, scale=0.5}",
                 "cached_attention(f32[T,8], f32[T,4], f32[T,4], bf16[9,4], bf16[9,4], i32[S+1], "
                 "i32[S], i32[S]) {heads=4, kv_heads=2}",
                 "cached_attention(f32[T,6], f32[T,6], f32[T,6], i8[9,16], i8[9,16], i32[S+1], "
                 "i32[S], i32[S]) {heads=2}"},
}};

}  // namespace
}  // namespace lathe::ops::cached_attention
