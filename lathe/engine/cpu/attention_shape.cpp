#include "lathe/engine/cpu/attention_shape.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "lathe/ops/attention_weights.h"

namespace lathe::engine {
namespace {

// Ranges of queries are no smaller: what the widest kernel takes at once. Where whole heads would
// be as many for each thread they are twice that and have as many scores, some 16 us, because less
// is not worth a cut.
constexpr std::int64_t kLeastQueries = 32;
constexpr std::int64_t kLeastScores = 1 << 14;
// Where sequences are alike each thread begins with as many tasks, so that a core that others use
// too costs one of them and not a turn of all threads.
constexpr std::int64_t kTasksOfThread = 8;
// To pack a key and its value costs as much as this part of a query.
constexpr double kPackedKey = 0.125;

std::int64_t work_of(const AttentionSequence& sequence) {
  return sequence.q_length * sequence.k_length;
}

// Whether all sequences that ask are about as long as each other.
bool are_alike(const std::vector<AttentionSequence>& sequences) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (const AttentionSequence& sequence : sequences) {
    if (sequence.q_length == 0) continue;
    least = std::min(least, work_of(sequence));
    most = std::max(most, work_of(sequence));
  }
  return most == 0 || 2 * least >= most;
}

// How many tasks the queries of a head are, `length` at most. Threads that begin with neighbours
// find the keys packed; those that are dealt tasks one by one pack them at the same time. The bits
// of a row do not depend on its range, so it may follow the number of threads.
std::int64_t num_ranges(std::int64_t length, std::int64_t pairs, std::int64_t threads,
                        bool neighbours) {
  if (threads == 1 || pairs == 0) return 1;
  const std::int64_t queries = neighbours && pairs % threads == 0
                                   ? std::max(2 * kLeastQueries, kLeastScores / length)
                                   : kLeastQueries;
  const std::int64_t most = std::max<std::int64_t>(1, length / queries);
  if (neighbours) return std::min(most, (kTasksOfThread * threads + pairs - 1) / pairs);
  std::int64_t best = 1;
  double least = 0;
  for (std::int64_t ranges = 1; ranges <= most; ++ranges) {
    const std::int64_t turns = (pairs * ranges + threads - 1) / threads;
    const double cost =
        static_cast<double>(turns * length) * (1 / static_cast<double>(ranges) + kPackedKey);
    if (ranges > 1 && cost >= least) continue;
    least = cost;
    best = ranges;
  }
  return best;
}

}  // namespace

AttentionShape::AttentionShape(const Graph& graph, NodeId id, std::size_t first) : first_(first) {
  const AttributeReader attributes = graph.attribute(id);
  heads = attributes.integer("heads");
  kv_heads = attributes.integer("kv_heads") == 0 ? heads : attributes.integer("kv_heads");
  d = graph.type(graph.input(id, first)).axis(-1).constant() / heads;
  const double written = attributes.real("scale");
  scale = static_cast<float>(written == 0 ? 1 / std::sqrt(static_cast<double>(d)) : written);
  causal = attributes.flag("causal");
  // By the types, for extents may agree by accident: as many tokens as sequences, one of them
  // empty.
  only_first_ =
      !graph.input(id, first + ops::kOffsets).is_none() &&
      graph.type(graph.input(id, first)).axis(0) != graph.type(graph.input(id, first + 1)).axis(0);
}

const std::int32_t* AttentionShape::integers(const WholeCall& call, std::size_t index) const {
  const std::size_t at = first_ + index;
  return at < call.inputs.size() ? reinterpret_cast<const std::int32_t*>(call.inputs[at]) : nullptr;
}

std::vector<AttentionSequence> AttentionShape::sequences(const WholeCall& call) const {
  const Graph& graph = call.graph;
  const auto dims = [&](std::size_t index) {
    return graph.type(graph.input(call.node, first_ + index)).dims(call.symbols);
  };
  const std::vector<std::int64_t> q = dims(ops::kQuery), k = dims(ops::kKey);
  std::vector<AttentionSequence> result;
  const std::int32_t* const offsets = integers(call, ops::kOffsets);
  if (offsets == nullptr) {
    for (std::int64_t b = 0; b < q[0]; ++b) result.push_back({b * q[1], b * k[1], q[1], k[1]});
    return result;
  }
  const std::int64_t num_sequences = dims(ops::kOffsets)[0] - 1;
  for (std::int64_t s = 0; s < num_sequences; ++s) {
    if (offsets[s] < 0 || offsets[s + 1] < offsets[s] || offsets[s + 1] > k[0])
      fail("offsets {} to {} of sequence {} do not lie in the {} tokens", offsets[s],
           offsets[s + 1], s, k[0]);
    const std::int64_t length = offsets[s + 1] - offsets[s];
    result.push_back({only_first_ ? s : offsets[s], offsets[s], only_first_ ? 1 : length, length});
  }
  return result;
}

const std::uint8_t* AttentionShape::keep(const WholeCall& call, const AttentionSequence& sequence,
                                         float* room) const {
  const std::int32_t* const mask = integers(call, ops::kMask);
  if (mask == nullptr) return nullptr;
  auto* const bytes = reinterpret_cast<std::uint8_t*>(room);
  for (std::int64_t i = 0; i < sequence.k_length; ++i)
    bytes[i] = mask[sequence.k_start + i] != 0 ? 1 : 0;
  return bytes;
}

std::vector<AttentionTask> attention_tasks(const AttentionShape& shape,
                                           const std::vector<AttentionSequence>& sequences,
                                           std::int64_t threads, AttentionTile tile) {
  std::int64_t longest = 1;
  for (const AttentionSequence& at : sequences) longest = std::max(longest, at.q_length);
  const std::int64_t ranges =
      num_ranges(longest, std::ssize(sequences) * shape.heads, threads, are_alike(sequences));
  std::vector<AttentionTask> tasks;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const std::int64_t length = sequences[s].q_length;
    const std::int64_t own = (length * ranges + longest - 1) / longest;
    const auto cut = [&](std::int64_t range) {
      return range == own ? length : tile(length, length * range / own);
    };
    for (std::int64_t head = 0; head < shape.heads; ++head)
      for (std::int64_t range = 0; range < own; ++range)
        if (cut(range) < cut(range + 1)) tasks.push_back({s, head, cut(range), cut(range + 1)});
  }
  return tasks;
}

PackedPairs::PackedPairs(const AttentionShape& shape,
                         const std::vector<AttentionSequence>& sequences,
                         const std::vector<AttentionTask>& tasks, std::int64_t bytes,
                         AlignedBuffer& memory)
    : group_(shape.heads / shape.kv_heads),
      kv_heads_(shape.kv_heads),
      bytes_((bytes + 63) / 64 * 64) {
  if (std::ssize(tasks) <= std::ssize(sequences) * shape.heads) return;
  states_ = std::vector<std::atomic<int>>(sequences.size() * static_cast<std::size_t>(kv_heads_));
  memory.reserve(std::ssize(states_) * bytes_);
  memory_ = memory.data();
}

const void* PackedPairs::find(const AttentionTask& task, const std::function<void(void*)>& pack) {
  if (states_.empty()) return nullptr;
  const std::size_t pair = task.sequence * static_cast<std::size_t>(kv_heads_) +
                           static_cast<std::size_t>(task.head / group_);
  std::byte* const place = memory_ + static_cast<std::int64_t>(pair) * bytes_;
  int state = kMissing;
  if (states_[pair].compare_exchange_strong(state, kBegun, std::memory_order_acquire)) {
    pack(place);
    states_[pair].store(kThere, std::memory_order_release);
    return place;
  }
  return state == kThere ? place : nullptr;
}

void run_attention_tasks(const WholeCall& call, const std::vector<AttentionSequence>& sequences,
                         std::vector<AttentionTask> tasks,
                         const std::function<void(const AttentionTask&, int)>& run) {
  const bool neighbours = are_alike(sequences);
  if (!neighbours)
    std::ranges::stable_sort(tasks, std::ranges::greater(), [&](const AttentionTask& task) {
      return work_of(sequences[task.sequence]);
    });
  (neighbours ? call.parallel_by_rows : call.parallel)(
      std::ssize(tasks),
      [&](std::int64_t index, int thread) { run(tasks[static_cast<std::size_t>(index)], thread); });
}

void fill_unseeing(const std::vector<AttentionSequence>& sequences, std::byte* result,
                   std::int64_t row_bytes) {
  for (const AttentionSequence& at : sequences)
    if (at.k_length == 0)
      std::fill_n(result + at.q_start * row_bytes, at.q_length * row_bytes, std::byte{0});
}

}  // namespace lathe::engine
