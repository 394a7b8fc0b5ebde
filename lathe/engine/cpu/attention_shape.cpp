#include "lathe/engine/cpu/attention_shape.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "lathe/ops/attention_weights.h"

namespace lathe::engine {
namespace {

// Ranges of queries are no smaller: what the widest kernel takes at once.
constexpr std::int64_t kLeastQueries = 32;
// To pack a key and its value costs as much as this part of a query.
constexpr double kPackedKey = 0.125;

// How many queries a task takes, where the longest of the sequences has `length`: fewer than all
// where threads would else have nothing to do, as with a batch of one. The bits of a row do not
// depend on its range, so it may follow the number of threads.
std::int64_t query_range(std::int64_t length, std::int64_t pairs, std::int64_t threads) {
  std::int64_t best = std::max<std::int64_t>(length, 1);
  double least = 0;
  for (std::int64_t parts = 1; parts <= std::max<std::int64_t>(1, length / kLeastQueries);
       ++parts) {
    const std::int64_t range = (length + parts - 1) / parts;
    const std::int64_t turns = (pairs * parts + threads - 1) / threads;
    const double cost = static_cast<double>(turns) *
                        (static_cast<double>(range) + kPackedKey * static_cast<double>(length));
    if (parts > 1 && cost >= least) continue;
    least = cost;
    best = std::max<std::int64_t>(range, 1);
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
                                           std::int64_t threads) {
  std::int64_t longest = 0;
  for (const AttentionSequence& at : sequences) longest = std::max(longest, at.q_length);
  const std::int64_t range = query_range(longest, std::ssize(sequences) * shape.heads, threads);
  std::vector<AttentionTask> tasks;
  for (std::size_t s = 0; s < sequences.size(); ++s)
    for (std::int64_t begin = 0; begin < sequences[s].q_length; begin += range)
      for (std::int64_t head = 0; head < shape.heads; ++head)
        tasks.push_back({s, head, begin, std::min(sequences[s].q_length, begin + range)});
  return tasks;
}

void run_attention_tasks(const WholeCall& call, const std::vector<AttentionSequence>& sequences,
                         std::vector<AttentionTask> tasks,
                         const std::function<void(const AttentionTask&, int)>& run) {
  if (tasks.empty()) return;
  const auto work = [&](const AttentionTask& task) {
    const AttentionSequence& sequence = sequences[task.sequence];
    return sequence.q_length * sequence.k_length;
  };
  const auto [least, most] = std::ranges::minmax(tasks, {}, work);
  const bool are_alike = 2 * work(least) >= work(most);
  if (!are_alike) std::ranges::stable_sort(tasks, std::ranges::greater(), work);
  (are_alike ? call.parallel_by_rows : call.parallel)(
      std::ssize(tasks),
      [&](std::int64_t index, int thread) { run(tasks[static_cast<std::size_t>(index)], thread); });
}

void fill_unseeing(const std::vector<AttentionSequence>& sequences, float* result,
                   std::int64_t width) {
  for (const AttentionSequence& at : sequences)
    if (at.k_length == 0) std::fill_n(result + at.q_start * width, at.q_length * width, 0.0f);
}

}  // namespace lathe::engine
