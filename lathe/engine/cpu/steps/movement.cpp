#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// Ops that only move or make bytes: copies of whole rows, and the small integers that packed
// batches are described by.

// Bytes a task clears: one core alone takes as long for all tokens as many do to compute with them.
constexpr std::int64_t kGrain = std::int64_t{128} << 10;

std::int64_t row_bytes(const Type& type, const SymbolValues& symbols, std::size_t first_axis) {
  std::int64_t bytes = size_of(type.dtype);
  for (std::size_t axis = first_axis; axis < type.rank(); ++axis)
    bytes *= type.shape[axis].evaluate(symbols);
  return bytes;
}

class SelectInSequenceStep final : public Step {
 public:
  explicit SelectInSequenceStep(bool is_gradient) : is_gradient_(is_gradient) {}
  void run_whole(const WholeCall& call) const override {
    const Graph& graph = call.graph;
    const Type& tokens =
        is_gradient_ ? graph.types(call.node)[0] : graph.type(graph.input(call.node, 0));
    const std::int64_t num_tokens = tokens.shape[0].evaluate(call.symbols);
    const std::int64_t bytes = row_bytes(tokens, call.symbols, 1);
    const std::int64_t sequences =
        graph.type(graph.input(call.node, 1)).shape[0].evaluate(call.symbols) - 1;
    const std::int64_t index = graph.attribute(call.node).integer("index");
    const auto* offsets = reinterpret_cast<const std::int32_t*>(call.inputs[1]);
    if (is_gradient_) clear(call, num_tokens * bytes);
    for (std::int64_t s = 0; s < sequences; ++s) {
      const std::int64_t token = (index < 0 ? offsets[s + 1] : offsets[s]) + index;
      if (token < 0 || token < offsets[s] || token >= offsets[s + 1] || token >= num_tokens)
        fail("sequence {} has {} tokens and no index {}", s, offsets[s + 1] - offsets[s], index);
      std::byte* const target = call.outputs[0] + (is_gradient_ ? token : s) * bytes;
      const std::byte* const source = call.inputs[0] + (is_gradient_ ? s : token) * bytes;
      std::memcpy(target, source, static_cast<std::size_t>(bytes));
    }
  }

 private:
  static void clear(const WholeCall& call, std::int64_t bytes) {
    call.parallel_by_rows((bytes + kGrain - 1) / kGrain, [&](std::int64_t chunk, int) {
      const std::int64_t begin = chunk * kGrain;
      std::memset(call.outputs[0] + begin, 0,
                  static_cast<std::size_t>(std::min(kGrain, bytes - begin)));
    });
  }

  bool is_gradient_;
};

// packed_positions(offsets), packed_examples(examples, offsets) and packed_shares(offsets): a
// number for each token.
enum class OfToken { Position, Example, Share };

class PackedIndexStep final : public Step {
 public:
  /// `first` is the position of a sequence's first token.
  explicit PackedIndexStep(OfToken number, std::int32_t first = 0)
      : number_(number), first_(first) {}
  void run_whole(const WholeCall& call) const override {
    const Graph& graph = call.graph;
    const std::size_t operand = number_ == OfToken::Example ? 1 : 0;
    const std::int64_t tokens = graph.types(call.node)[0].shape[0].evaluate(call.symbols);
    const std::int64_t sequences =
        graph.type(graph.input(call.node, operand)).shape[0].evaluate(call.symbols) - 1;
    const auto* offsets = reinterpret_cast<const std::int32_t*>(call.inputs[operand]);
    const auto* values = reinterpret_cast<const std::int32_t*>(call.inputs[0]);
    auto* const out = reinterpret_cast<std::int32_t*>(call.outputs[0]);
    auto* const shares = reinterpret_cast<float*>(call.outputs[0]);
    std::int64_t next = 0;
    for (std::int64_t s = 0; s < sequences; ++s) {
      if (offsets[s] != next || offsets[s + 1] < offsets[s] || offsets[s + 1] > tokens)
        fail("offsets {} to {} of sequence {} do not lie in the {} tokens", offsets[s],
             offsets[s + 1], s, tokens);
      switch (number_) {
        case OfToken::Position:
          std::iota(out + next, out + offsets[s + 1], first_);
          break;
        case OfToken::Example:
          std::fill(out + next, out + offsets[s + 1], values[s]);
          break;
        case OfToken::Share:
          std::fill(shares + next, shares + offsets[s + 1],
                    static_cast<float>(1.0 / (offsets[s + 1] - offsets[s])));
          break;
      }
      next = offsets[s + 1];
    }
    if (next != tokens) fail("the offsets end at {}, but there are {} tokens", next, tokens);
  }

 private:
  OfToken number_;
  std::int32_t first_;
};

// full_like(x) {value} and constant() {values}: numbers of 32 bits, whose patterns are all that
// matters here; one for all elements or one for each.
class FillStep final : public Step {
 public:
  explicit FillStep(std::vector<std::uint32_t> patterns) : patterns_(std::move(patterns)) {}
  void run_whole(const WholeCall& call) const override {
    const std::int64_t count = call.graph.types(call.node)[0].num_elements().evaluate(call.symbols);
    auto* const out = reinterpret_cast<std::uint32_t*>(call.outputs[0]);
    if (patterns_.size() == 1)
      std::fill_n(out, count, patterns_[0]);
    else
      std::copy(patterns_.begin(), patterns_.end(), out);
  }

 private:
  std::vector<std::uint32_t> patterns_;
};

std::unique_ptr<Step> make_fill(DType dtype, const std::vector<double>& values) {
  if (dtype != DType::I32 && dtype != DType::F32) return nullptr;
  std::vector<std::uint32_t> patterns;
  for (const double value : values)
    patterns.push_back(dtype == DType::I32
                           ? std::bit_cast<std::uint32_t>(static_cast<std::int32_t>(value))
                           : std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  return std::make_unique<FillStep>(std::move(patterns));
}

class PositionsStep final : public Step {
 public:
  explicit PositionsStep(std::int32_t first) : first_(first) {}
  void run_whole(const WholeCall& call) const override {
    const std::vector<std::int64_t> dims = call.graph.types(call.node)[0].dims(call.symbols);
    auto* const out = reinterpret_cast<std::int32_t*>(call.outputs[0]);
    for (std::int64_t row = 0; row < dims[0]; ++row)
      for (std::int64_t i = 0; i < dims[1]; ++i)
        out[row * dims[1] + i] = first_ + static_cast<std::int32_t>(i);
  }

 private:
  std::int32_t first_;
};

std::int32_t first_position(const Graph& graph, NodeId id) {
  return static_cast<std::int32_t>(graph.attribute(id).integer("first"));
}

bool is_i32(const Graph& graph, Value value) {
  return graph.type(value).dtype == DType::I32;
}

const Register select_in_sequence{
    CpuKernel{"select_in_sequence", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (!is_i32(graph, graph.input(id, 1))) return nullptr;
                return std::make_unique<SelectInSequenceStep>(false);
              }}};
const Register select_in_sequence_gradient{CpuKernel{
    "select_in_sequence_gradient", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
      if (!is_i32(graph, graph.input(id, 1))) return nullptr;
      return std::make_unique<SelectInSequenceStep>(true);
    }}};
const Register packed_positions{CpuKernel{
    "packed_positions", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
      if (!is_i32(graph, graph.input(id, 0)) || !is_i32(graph, {id, 0})) return nullptr;
      return std::make_unique<PackedIndexStep>(OfToken::Position, first_position(graph, id));
    }}};
const Register packed_examples{
    CpuKernel{"packed_examples", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (!is_i32(graph, graph.input(id, 0)) || !is_i32(graph, graph.input(id, 1)) ||
                    !is_i32(graph, {id, 0}))
                  return nullptr;
                return std::make_unique<PackedIndexStep>(OfToken::Example);
              }}};
const Register packed_shares{
    CpuKernel{"packed_shares", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (!is_i32(graph, graph.input(id, 0)) || graph.types(id)[0].dtype != DType::F32)
                  return nullptr;
                return std::make_unique<PackedIndexStep>(OfToken::Share);
              }}};
const Register full_like{CpuKernel{"full_like", [](const Graph& graph, NodeId id) {
                                     return make_fill(graph.types(id)[0].dtype,
                                                      {graph.attribute(id).real("value")});
                                   }}};
const Register constant{CpuKernel{"constant", [](const Graph& graph, NodeId id) {
                                    return make_fill(graph.types(id)[0].dtype,
                                                     graph.attribute(id).reals("values"));
                                  }}};
const Register positions{
    CpuKernel{"positions", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (!is_i32(graph, {id, 0}) || graph.types(id)[0].rank() != 2) return nullptr;
                return std::make_unique<PositionsStep>(first_position(graph, id));
              }}};

}  // namespace
}  // namespace lathe::engine
