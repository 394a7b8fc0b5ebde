#include <algorithm>

#include "lathe/engine/cpu/steps/integer/row_map.h"
#include "lathe/numerics/integer/normalization.h"
#include "lathe/numerics/integer/requant.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/integer/integer_softmax_row.h"

// The integer ops whose rows stand for themselves, by the functions that define them.
namespace lathe::engine {
namespace {

using numerics::Integer128;
using numerics::IntegerRange;
using numerics::IntegerRounding;

// requant of what 63 bits hold, product and half included; the definition for anything wider.
struct Requant {
  int shift;
  IntegerRounding rounding;
  IntegerRange range;
  std::int64_t low = range.low(), high = range.high();

  std::int64_t operator()(std::int64_t x, std::int64_t multiplier) const {
    const bool is_narrow = x <= INT32_MAX && x >= INT32_MIN && shift >= 0;
    if (!is_narrow) return numerics::requant(x, multiplier, shift, rounding, range);
    // |x * multiplier| < 2^62: adding almost a half in front of the shift rounds to the nearest,
    // and the bit above decides a tie.
    const std::int64_t product = x * multiplier;
    std::int64_t y = product;
    if (shift > 0) {
      const std::int64_t half = std::int64_t{1} << (shift - 1);
      if (rounding == IntegerRounding::NearestEven)
        y = (product + half - 1 + (product >> shift & 1)) >> shift;
      else
        y = rounding == IntegerRounding::HalfUp ? (product + half) >> shift : product >> shift;
    }
    return std::clamp(y, low, high);
  }
};

Requant requant_of(const AttributeReader& attributes) {
  return {.shift = ops::shift_attribute(attributes, "shift"),
          .rounding = ops::integer_rounding(attributes),
          .range = ops::integer_range(attributes)};
}

std::unique_ptr<Step> make_requant(const Graph& graph, NodeId id) {
  const AttributeReader attributes = graph.attribute(id);
  const Requant requant = requant_of(attributes);
  const bool has_multipliers = graph.inputs(id).size() > 1 && !graph.input(id, 1).is_none();
  const auto rank = static_cast<std::int64_t>(graph.types(id)[0].rank());
  const std::int64_t axis = attributes.integer("axis");
  if (has_multipliers && axis != -1 && axis != rank - 1) return nullptr;
  const std::int64_t multiplier = attributes.integer("multiplier");
  return make_integer_row_step(graph, id, {true, false}, [=](const IntegerRow& row) {
    for (std::size_t i = 0; i < row.result.size(); ++i)
      row.result[i] =
          requant(row.operands[0][i], has_multipliers ? row.operands[1][i] : multiplier);
  });
}

std::unique_ptr<Step> make_integer_add(const Graph& graph, NodeId id) {
  const std::int64_t a = graph.attribute(id).integer("multiplier_a");
  const std::int64_t b = graph.attribute(id).integer("multiplier_b");
  // One row for all, such as positions' where there is one, is read whole.
  std::vector<bool> is_row;
  for (const Value& value : graph.inputs(id)) {
    is_row.push_back(graph.type(value).shape == graph.types(id)[0].shape);
    if (!is_row.back() && graph.type(value).shape != Shape{graph.types(id)[0].axis(-1)})
      return nullptr;
  }
  return make_integer_row_step(graph, id, is_row, [=](const IntegerRow& row) {
    for (std::size_t i = 0; i < row.result.size(); ++i)
      row.result[i] = row.operands[0][i] * a + row.operands[1][i] * b;
  });
}

std::unique_ptr<Step> make_integer_table(const Graph& graph, NodeId id) {
  const std::int64_t low = graph.attribute(id).integer("low");
  return make_integer_row_step(graph, id, {true, false}, [=](const IntegerRow& row) {
    const auto entries = static_cast<std::int64_t>(row.operands[1].size());
    for (std::size_t i = 0; i < row.result.size(); ++i) {
      const std::int64_t x = row.operands[0][i];
      if (x < low || x - low >= entries)
        fail("{} is outside the table, which has {} entries from {} on", x, entries, low);
      row.result[i] = row.operands[1][static_cast<std::size_t>(x - low)];
    }
  });
}

std::unique_ptr<Step> make_integer_layer_norm(const Graph& graph, NodeId id) {
  const AttributeReader attributes = graph.attribute(id);
  const Requant requant = requant_of(attributes);
  numerics::Normalization norm{
      .size =
          graph.types(id)[0].axis(-1).is_constant() ? graph.types(id)[0].axis(-1).constant() : 0,
      .epsilon = attributes.integer("epsilon"),
      .root_fraction = static_cast<int>(attributes.integer("root_fraction")),
      .fraction = static_cast<int>(attributes.integer("fraction"))};
  return make_integer_row_step(graph, id, {true, false, false}, [=](const IntegerRow& row) {
    const numerics::RowMoments moments = numerics::row_moments(row.operands[0], norm);
    for (std::size_t i = 0; i < row.result.size(); ++i) {
      const Integer128 z = numerics::normalized(row.operands[0][i], moments, norm);
      row.result[i] = numerics::requant(z * row.operands[1][i] + row.operands[2][i], 1,
                                        requant.shift, requant.rounding, requant.range);
    }
  });
}

std::unique_ptr<Step> make_integer_softmax(const Graph& graph, NodeId id) {
  const AttributeReader attributes = graph.attribute(id);
  const ops::ExponentScale exponents = ops::exponent_scale(attributes);
  const Integer128 multiplier = attributes.integer("multiplier");
  const int shift = ops::shift_attribute(attributes, "shift");
  const IntegerRange range = ops::integer_range(attributes);
  return make_integer_row_step(graph, id, {true}, [=](const IntegerRow& row) {
    std::ranges::copy(row.operands[0], row.result.begin());
    const Integer128 sum = ops::exponential_row(row.result, {}, exponents);
    for (std::int64_t& weight : row.result)
      weight = numerics::requant(
          numerics::rounded_divide(weight * multiplier, sum * (std::int64_t{1} << shift)), 1, 0,
          IntegerRounding::NearestEven, range);
  });
}

const Register requant{CpuKernel{"requant", make_requant}};
const Register integer_add{CpuKernel{"integer_add", make_integer_add}};
const Register integer_table{CpuKernel{"integer_table", make_integer_table}};
const Register integer_layer_norm{CpuKernel{"integer_layer_norm", make_integer_layer_norm}};
const Register integer_softmax{CpuKernel{"integer_softmax", make_integer_softmax}};

}  // namespace
}  // namespace lathe::engine
