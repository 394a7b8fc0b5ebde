#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/engine/cpu/step.h"
#include "lathe/ops/relative_buckets.h"

namespace lathe::engine {
namespace {

constexpr std::size_t kRelativeMask = 3, kRelativeOffsets = 4, kPositionKeys = 5,
                      kPositionQueries = 6;
// Queries whose scores are made at once.
constexpr std::int64_t kQueryRange = 64;

struct RelativeSequence {
  std::int64_t start, length;
};

// Relative attention one (sequence, head) at a time, by products: queries with keys, queries and
// keys with the rows of positions that distances of the sequence can have, weights with values.
class RelativeAttentionStep final : public Step {
 public:
  RelativeAttentionStep(std::int64_t heads, std::int64_t d, float scale,
                        ops::RelativeBuckets buckets)
      : heads_(heads), d_(d), scale_(scale), buckets_(buckets) {}

  void run_whole(const WholeCall& call) const override {
    const std::vector<RelativeSequence> sequences = read_sequences(call);
    std::int64_t longest = 0;
    for (const RelativeSequence& at : sequences) longest = std::max(longest, at.length);
    if (longest == 0) return;
    const std::vector<std::int32_t> rows = buckets_.rows(longest);
    const std::int64_t most_rows = rows.back() - rows.front() + 1;
    const Room most(call.kernels, longest, most_rows, d_);
    for (AlignedBuffer& buffer : call.scratch)
      buffer.reserve(most.size * static_cast<std::int64_t>(sizeof(float)));
    call.parallel(std::ssize(sequences) * heads_, [&](std::int64_t task, int thread) {
      const RelativeSequence& at = sequences[static_cast<std::size_t>(task / heads_)];
      if (at.length == 0) return;
      attend(call, at, task % heads_, rows.data() + longest - 1,
             call.scratch[static_cast<std::size_t>(thread)].floats());
    });
  }

 private:
  // Where a task's parts lie in its scratch.
  struct Room {
    std::int64_t keys, values, positions, by_query, by_key, scores, size;
    Room(const Kernels& kernels, std::int64_t length, std::int64_t rows, std::int64_t d) {
      keys = 0;
      values = keys + kernels.packed_size(length, d);
      positions = values + kernels.packed_size(d, length);
      by_query = positions + kernels.packed_size(rows, d);
      by_key = by_query + kQueryRange * rows;
      scores = by_key + length * rows;
      size = scores + kQueryRange * length;
    }
  };

  std::int64_t width() const { return heads_ * d_; }
  static const float* input(const WholeCall& call, std::size_t index) {
    return index < call.inputs.size() ? reinterpret_cast<const float*>(call.inputs[index])
                                      : nullptr;
  }
  static const std::int32_t* integers(const WholeCall& call, std::size_t index) {
    return index < call.inputs.size() ? reinterpret_cast<const std::int32_t*>(call.inputs[index])
                                      : nullptr;
  }

  static std::vector<RelativeSequence> read_sequences(const WholeCall& call) {
    const auto dims = [&](std::size_t index) {
      return call.graph.type(call.graph.input(call.node, index)).dims(call.symbols);
    };
    const std::vector<std::int64_t> q = dims(0);
    std::vector<RelativeSequence> result;
    const std::int32_t* const offsets = integers(call, kRelativeOffsets);
    if (offsets == nullptr) {
      for (std::int64_t b = 0; b < q[0]; ++b) result.push_back({b * q[1], q[1]});
      return result;
    }
    for (std::int64_t s = 0; s < dims(kRelativeOffsets)[0] - 1; ++s) {
      if (offsets[s] < 0 || offsets[s + 1] < offsets[s] || offsets[s + 1] > q[0])
        fail("offsets {} to {} of sequence {} do not lie in the {} tokens", offsets[s],
             offsets[s + 1], s, q[0]);
      result.push_back({offsets[s], offsets[s + 1] - offsets[s]});
    }
    return result;
  }

  static void multiply(const Kernels& kernels, std::int64_t rows, std::int64_t n, std::int64_t k,
                       const float* x, std::int64_t x_stride, const float* packed, float* y,
                       std::int64_t y_stride) {
    kernels.gemm({.rows = rows,
                  .n = n,
                  .k = k,
                  .x = x,
                  .x_stride = x_stride,
                  .packed = packed,
                  .bias = nullptr,
                  .activation = Unary::None,
                  .residual = nullptr,
                  .residual_stride = 0,
                  .y = y,
                  .y_stride = y_stride,
                  .accumulate = false});
  }

  // `rows` points at the row of distance 0.
  void attend(const WholeCall& call, const RelativeSequence& at, std::int64_t head,
              const std::int32_t* rows, float* scratch) const {
    const Kernels& kernels = call.kernels;
    const std::int64_t length = at.length, place = at.start * width() + head * d_;
    const std::int64_t first = rows[1 - length], count = rows[length - 1] - first + 1;
    const Room room(kernels, length, count, d_);
    const float *const q = input(call, 0) + place, *const k = input(call, 1) + place,
                       *const v = input(call, 2) + place;
    float* const y = reinterpret_cast<float*>(call.outputs[0]) + place;
    float *const by_query = scratch + room.by_query, *const by_key = scratch + room.by_key,
                 *const scores = scratch + room.scores, *const packed = scratch + room.positions;
    const auto pack_positions = [&](const float* table) {
      kernels.pack_b(table + first * width() + head * d_, count, d_, width(), 1, packed);
    };
    kernels.pack_b(k, length, d_, width(), 1, scratch + room.keys);
    kernels.pack_b(v, d_, length, 1, width(), scratch + room.values);
    const float* const position_keys = input(call, kPositionKeys);
    const float* const position_queries = input(call, kPositionQueries);
    if (position_queries != nullptr) {
      pack_positions(position_queries);
      multiply(kernels, length, count, d_, k, width(), packed, by_key, count);
    }
    if (position_keys != nullptr) pack_positions(position_keys);
    const std::int32_t* const mask = integers(call, kRelativeMask);
    for (std::int64_t begin = 0; begin < length; begin += kQueryRange) {
      const std::int64_t range = std::min(kQueryRange, length - begin);
      multiply(kernels, range, length, d_, q + begin * width(), width(), scratch + room.keys,
               scores, length);
      if (position_keys != nullptr)
        multiply(kernels, range, count, d_, q + begin * width(), width(), packed, by_query, count);
      for (std::int64_t i = 0; i < range; ++i) {
        float* const row = scores + i * length;
        const std::int32_t* const places = rows + begin + i;
        if (position_keys != nullptr)
          for (std::int64_t j = 0; j < length; ++j)
            row[j] += by_query[i * count + places[-j] - first];
        if (position_queries != nullptr)
          for (std::int64_t j = 0; j < length; ++j)
            row[j] += by_key[j * count + places[-j] - first];
        finish_scores(row, length, mask == nullptr ? nullptr : mask + at.start);
      }
      kernels.softmax_rows({.rows = range,
                            .n = length,
                            .x = scores,
                            .x_stride = length,
                            .y = scores,
                            .y_stride = length});
      multiply(kernels, range, d_, length, scores, length, scratch + room.values,
               y + begin * width(), width());
    }
  }

  // Scales scores and takes keys out that are not kept; where none is, all are alike.
  void finish_scores(float* row, std::int64_t length, const std::int32_t* mask) const {
    bool sees_keys = mask == nullptr;
    for (std::int64_t j = 0; j < length; ++j) {
      row[j] *= scale_;
      if (mask == nullptr) continue;
      sees_keys = sees_keys || mask[j] != 0;
      if (mask[j] == 0) row[j] = -std::numeric_limits<float>::infinity();
    }
    if (!sees_keys) std::fill_n(row, length, 0.0f);
  }

  std::int64_t heads_, d_;
  float scale_;
  ops::RelativeBuckets buckets_;
};

std::unique_ptr<Step> make_relative_attention(const Graph& graph, NodeId id) {
  const std::optional<RowShape> q = row_shape(graph.types(id)[0]);
  if (!q) return nullptr;
  const std::vector<Value>& inputs = graph.inputs(id);
  const auto has = [&](std::size_t operand) {
    return operand < inputs.size() && !inputs[operand].is_none();
  };
  for (const std::size_t operand : {kRelativeMask, kRelativeOffsets})
    if (has(operand) && graph.type(inputs[operand]).dtype != DType::I32) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  const std::int64_t heads = attributes.integer("heads"), d = q->width / heads;
  const double scale = attributes.real("scale");
  const Type& table = graph.type(inputs[has(kPositionKeys) ? kPositionKeys : kPositionQueries]);
  return std::make_unique<RelativeAttentionStep>(
      heads, d, static_cast<float>(scale == 0 ? 1 / std::sqrt(static_cast<double>(d)) : scale),
      ops::RelativeBuckets::of(attributes, table.axis(0).constant()));
}

const Register relative_attention{CpuKernel{"relative_attention", make_relative_attention}};

}  // namespace
}  // namespace lathe::engine
