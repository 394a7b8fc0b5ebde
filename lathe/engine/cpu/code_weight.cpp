#include "lathe/engine/cpu/code_weight.h"

#include <algorithm>

namespace lathe::engine {
namespace {

// Writes value(row, block) of a weight's rows, the columns of its panels, line by line.
template <typename T, typename Value>
void write_panels(AlignedBuffer& to, std::int64_t n, std::int64_t panel, std::int64_t lines,
                  Value value) {
  const std::int64_t panels = (n + panel - 1) / panel;
  to.reserve(panels * panel * lines * static_cast<std::int64_t>(sizeof(T)));
  T* next = reinterpret_cast<T*>(to.data());
  for (std::int64_t first = 0; first < n; first += panel)
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t j = first; j < first + panel; ++j) *next++ = j < n ? value(j, line) : T{0};
}

}  // namespace

void CodeWeight::pack(const CodeKernels& kernels, const numerics::RowCodes& weight,
                      const CodeCut& cut, bool has_zeros) {
  kernels_ = &kernels;
  cut_ = cut;
  cut_.has_nibbles = (cut.blocks == 1 || cut.width % 8 == 0) &&
                     std::all_of(weight.numbers.begin(), weight.numbers.end(),
                                 [](std::int8_t number) { return number >= -8 && number <= 7; });
  const std::int64_t n = weight.rows, panel = kernels.grain().columns;
  numbers_.reserve(std::max<std::int64_t>(kernels.packed_size(n, cut_), 64));
  kernels.pack(weight.numbers.data(), n, cut_, reinterpret_cast<std::int8_t*>(numbers_.data()));
  write_panels<float>(scales_, n, panel, weight.blocks, [&](std::int64_t j, std::int64_t block) {
    return weight.scales[static_cast<std::size_t>(j * weight.blocks + block)];
  });
  if (!has_zeros) return;
  write_panels<std::int32_t>(sums_, n, panel, cut.blocks, [&](std::int64_t j, std::int64_t block) {
    std::int32_t sum = 0;
    for (std::int64_t i = block * cut.width; i < std::min(cut.k, (block + 1) * cut.width); ++i)
      sum += weight.numbers[static_cast<std::size_t>(j * cut.k + i)];
    return sum;
  });
}

void CodeWeight::set_operands(CodeArgs& args, std::int64_t column) const {
  args.cut = cut_;
  args.packed =
      reinterpret_cast<const std::int8_t*>(numbers_.data()) + kernels_->packed_size(column, cut_);
  args.weight_scales =
      scales_.floats() + column * (cut_.weight_has_blocks ? cut_.blocks : std::int64_t{1});
  args.sums = sums_.size() == 0
                  ? nullptr
                  : reinterpret_cast<const std::int32_t*>(sums_.data()) + column * cut_.blocks;
}

void WidenedWeight::pack(const CodeKernels& kernels, const numerics::RowCodes& weight) {
  kernels_ = &kernels;
  k_ = weight.columns;
  blocks_ = weight.blocks;
  width_ = weight.width;
  const std::int64_t panel = kernels.grain().columns;
  write_panels<std::int8_t>(numbers_, weight.rows, panel, k_, [&](std::int64_t j, std::int64_t p) {
    return weight.numbers[static_cast<std::size_t>(j * k_ + p)];
  });
  write_panels<float>(scales_, weight.rows, panel, blocks_, [&](std::int64_t j, std::int64_t b) {
    return weight.scales[static_cast<std::size_t>(j * blocks_ + b)];
  });
}

void WidenedWeight::set_operands(WidenedArgs& args, std::int64_t column) const {
  args.k = k_;
  args.width = width_;
  args.numbers = reinterpret_cast<const std::int8_t*>(numbers_.data()) + column * k_;
  args.scales = scales_.floats() + column * blocks_;
}

}  // namespace lathe::engine
