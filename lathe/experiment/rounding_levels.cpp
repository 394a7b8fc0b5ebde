#include "lathe/experiment/rounding_levels.h"

#include <algorithm>

#include "lathe/numerics/number_line.h"

namespace lathe::experiment {
namespace {

constexpr std::size_t kMostLevels = 1 << 16;  // of all rows together

// One scale's part of a number line: number n stands for (n - zero) * scale.
struct Line {
  double scale = 1, zero = 0;
  double at(double number) const { return (number - zero) * scale; }
};

Line line_at(const float* scales, const float* zeros, std::size_t index) {
  return {scales != nullptr ? static_cast<double>(scales[index]) : 1.0,
          zeros != nullptr ? static_cast<double>(zeros[index]) : 0.0};
}

class Builder {
 public:
  explicit Builder(std::vector<double> numbers) : numbers_(std::move(numbers)) {
    result_.count = static_cast<std::int64_t>(numbers_.size());
  }
  void add(const Line& line) {
    if (result_.levels.size() + numbers_.size() <= kMostLevels)
      for (const double number : numbers_) result_.levels.push_back(line.at(number));
  }
  template <typename Values>
  void count_clipped(const Values& values, const Line& line) {
    // What lies within half a step of the last level is rounded to it like any other value.
    const std::size_t last = numbers_.size() - 1;
    const double low = line.at(numbers_[0] - (numbers_[1] - numbers_[0]) / 2),
                 high = line.at(numbers_[last] + (numbers_[last] - numbers_[last - 1]) / 2);
    for (const double value : values) clipped_ += value < low || value > high;
    num_values_ += static_cast<double>(values.size());
  }
  void bound(const Line& line) {
    result_.low = line.at(numbers_.front());
    result_.high = line.at(numbers_.back());
  }
  RoundingLevels finish() {
    std::ranges::sort(result_.levels);
    result_.levels.erase(std::unique(result_.levels.begin(), result_.levels.end()),
                         result_.levels.end());
    result_.clipped = num_values_ > 0 ? clipped_ / num_values_ : 0;
    return std::move(result_);
  }

 private:
  std::vector<double> numbers_;  // at scale 1, sorted
  RoundingLevels result_;
  double clipped_ = 0, num_values_ = 0;
};

// A parameter's rows, or runs of a row, each with a scale of its own.
void add_rows(Builder& builder, const FormatFacts& facts, const compress::FormatMatrix& matrix) {
  const QuantizeArgs& args = matrix.args;
  const std::int64_t run = facts.granularity == Granularity::Block && facts.block_columns > 0
                               ? facts.block_columns
                               : args.columns;
  const std::span<const float> values = matrix.values.data<float>();
  std::size_t scale = 0;
  for (std::int64_t row = 0; row < args.rows; ++row)
    for (std::int64_t begin = 0; begin < args.columns; begin += run, ++scale) {
      const Line line = line_at(args.scales, args.zeros, scale);
      builder.add(line);
      builder.count_clipped(
          values.subspan(static_cast<std::size_t>(row * args.columns + begin),
                         static_cast<std::size_t>(std::min(run, args.columns - begin))),
          line);
    }
}

}  // namespace

std::optional<RoundingLevels> levels_of(const compress::Quantizer& quantizer, const Graph& graph,
                                        const State& state, std::span<const double> values) {
  const auto format = parse_format(quantizer.format);
  const FormatFacts& facts = format->facts();
  if (facts.scale_source == ScaleSource::Local || facts.block_rows > 1) return std::nullopt;
  std::vector<double> numbers = numerics::representable_numbers(*format);
  if (numbers.size() < 2) return std::nullopt;
  Builder builder(std::move(numbers));
  if (facts.granularity != Granularity::Tensor && facts.scale_source == ScaleSource::Given) {
    if (!quantizer.is_parameter) return std::nullopt;
    const Tensor parameter = compress::parameter_value(graph, state, quantizer);
    add_rows(builder, facts, compress::format_matrix(graph, state, quantizer.node, parameter));
    return builder.finish();
  }
  const Tensor* scale = compress::scale_of(graph, state, quantizer.node);
  const Tensor* zero = compress::zero_of(graph, state, quantizer.node);
  const Line line = line_at(scale != nullptr ? scale->data<float>().data() : nullptr,
                            zero != nullptr ? zero->data<float>().data() : nullptr, 0);
  builder.add(line);
  builder.bound(line);
  builder.count_clipped(values, line);
  return builder.finish();
}

}  // namespace lathe::experiment
