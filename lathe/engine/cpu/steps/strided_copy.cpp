#include <algorithm>
#include <cstring>

#include "lathe/engine/cpu/step.h"
#include "lathe/ops/axes.h"

namespace lathe::engine {
namespace {

// transpose and broadcast_to: each axis of the result walks along the operand with a stride of its
// own, 0 where it is stretched.

// The strides of `from` when it is broadcast to `to`, which has at least its rank.
std::vector<std::int64_t> broadcast_strides(std::span<const std::int64_t> from,
                                            std::span<const std::int64_t> to) {
  const std::vector<std::int64_t> own = ops::row_major_strides(from);
  std::vector<std::int64_t> strides(to.size(), 0);
  const std::size_t skipped = to.size() - from.size();
  for (std::size_t axis = 0; axis < from.size(); ++axis)
    if (from[axis] == to[skipped + axis]) strides[skipped + axis] = own[axis];
  return strides;
}

std::vector<std::int64_t> transposed_strides(std::span<const std::int64_t> from,
                                             std::span<const std::int64_t> axes) {
  const std::vector<std::int64_t> own = ops::row_major_strides(from);
  std::vector<std::int64_t> strides;
  for (const std::int64_t axis : axes)
    strides.push_back(own[ops::axis_position(axis, from.size())]);
  return strides;
}

template <typename Element>
void copy_row(const std::byte* from, std::int64_t stride, std::int64_t count, std::byte* to) {
  const auto* const source = reinterpret_cast<const Element*>(from);
  auto* const target = reinterpret_cast<Element*>(to);
  if (stride == 1) {
    std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(Element));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) target[i] = source[i * stride];
}

using CopyRow = void (*)(const std::byte*, std::int64_t, std::int64_t, std::byte*);

// The copy for elements of that many bytes; nullptr for other sizes.
CopyRow copy_row_of(std::int64_t bytes) {
  switch (bytes) {
    case 1:
      return copy_row<std::uint8_t>;
    case 2:
      return copy_row<std::uint16_t>;
    case 4:
      return copy_row<std::uint32_t>;
    case 8:
      return copy_row<std::uint64_t>;
    default:
      return nullptr;
  }
}

class StridedCopyStep final : public Step {
 public:
  StridedCopyStep(bool is_transpose, CopyRow copy) : is_transpose_(is_transpose), copy_(copy) {}

  void run_whole(const WholeCall& call) const override {
    const Graph& graph = call.graph;
    const Type& type = graph.types(call.node)[0];
    const std::vector<std::int64_t> from = graph.type(graph.input(call.node, 0)).dims(call.symbols);
    std::vector<std::int64_t> dims = type.dims(call.symbols);
    std::vector<std::int64_t> strides =
        is_transpose_ ? transposed_strides(from, graph.attribute(call.node).integers("axes"))
                      : broadcast_strides(from, dims);
    if (dims.empty()) {
      dims = {1};
      strides = {1};
    }
    const std::int64_t n = dims.back(), inner = strides.back();
    dims.pop_back();
    strides.pop_back();
    const std::int64_t rows = num_elements(dims);
    if (rows == 0 || n == 0) return;
    const std::int64_t bytes = size_of(type.dtype);
    constexpr std::int64_t kTaskElements = 1 << 14;
    const std::int64_t grain = std::max<std::int64_t>(1, kTaskElements / n);
    call.parallel((rows + grain - 1) / grain, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(rows, (task + 1) * grain);
      for (std::int64_t row = task * grain; row < end; ++row) {
        std::int64_t place = 0, rest = row;
        for (std::size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
          place += rest % dims[axis] * strides[axis];
        copy_(call.inputs[0] + place * bytes, inner, n, call.outputs[0] + row * n * bytes);
      }
    });
  }

 private:
  bool is_transpose_;
  CopyRow copy_;
};

std::unique_ptr<Step> make_copy(const Graph& graph, NodeId id) {
  const CopyRow copy = copy_row_of(size_of(graph.types(id)[0].dtype));
  if (copy == nullptr) return nullptr;
  return std::make_unique<StridedCopyStep>(graph.is(id, "transpose"), copy);
}

const Register transpose{CpuKernel{"transpose", make_copy}};
const Register broadcast_to{CpuKernel{"broadcast_to", make_copy}};

}  // namespace
}  // namespace lathe::engine
