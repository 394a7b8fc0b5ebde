#include "lathe/io/onnx/constant_nodes.h"

#include <cmath>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/io/family_weights.h"

namespace lathe::io::onnx {
namespace {

bool is_one_number(const Tensor& tensor) {
  for (std::int64_t i = 1; i < tensor.num_elements(); ++i)
    if (tensor.at(i) != tensor.at(0)) return false;
  return true;
}

bool holds_infinity(const Tensor& tensor) {
  const std::optional<std::int64_t> index = find_non_finite(tensor);
  return index && std::isinf(tensor.at(*index));
}

}  // namespace

Value add_constant(ImportedGraph& to, const std::string& name, const Tensor& tensor,
                   bool is_buffer) {
  Type type{.dtype = tensor.dtype(), .shape = {}};
  for (const std::int64_t size : tensor.dims()) type.shape.emplace_back(size);
  // Numbers, short lists of whole ones and arrays of one number that nobody named are part of
  // what a graph says; other arrays are its parameters and buffers.
  constexpr std::int64_t kMostWritten = 16;
  const bool is_whole = !is_floating(tensor.dtype());
  const std::int64_t count = tensor.num_elements();
  std::vector<double> numbers;
  if (count > 0 && ((is_whole || is_anonymous(name)) && is_one_number(tensor)))
    numbers = {tensor.at(0)};
  else if (count == 1 || (is_whole && count <= kMostWritten))
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(tensor.at(i));
  bool is_exact = !numbers.empty();
  for (const double number : numbers)
    is_exact = is_exact && (!is_whole || std::fabs(number) < 0x1p53);
  if (is_exact)
    return {to.graph.add({.name = name,
                          .op = "constant",
                          .inputs = {},
                          .attributes = {{"values", std::move(numbers)}},
                          .types = {type}}),
            0};
  Attributes attributes;
  // Nothing learns infinities: they are masks of scores.
  if (is_buffer || is_whole || holds_infinity(tensor)) attributes["role"] = std::string("buffer");
  const NodeId id = to.graph.add({.name = name,
                                  .op = "state",
                                  .inputs = {},
                                  .attributes = std::move(attributes),
                                  .types = {type}});
  to.state[to.graph.name(id)] = tensor;
  return {id, 0};
}

Value add_affine(Graph& graph, const std::string& name, const AffineArray& array) {
  std::vector<Value> terms;
  bool has_offset = array.offset == Size(0);
  if (!array.offset.is_constant())
    fail("{} holds the size {}, which is not known before the model runs, and is used as a number",
         quote_text(name), array.offset.text());
  for (std::size_t axis = 0; axis < array.shape.size(); ++axis) {
    if (array.slopes[axis] == Size(0)) continue;
    if (!array.slopes[axis].is_constant())
      fail("{} counts in steps of {}, which is not known before the model runs", quote_text(name),
           array.slopes[axis].text());
    const double first = has_offset ? 0.0 : static_cast<double>(array.offset.constant());
    has_offset = true;
    const NodeId range =
        graph.add({.name = name,
                   .op = "range",
                   .inputs = {},
                   .attributes = {{"first", first},
                                  {"step", static_cast<double>(array.slopes[axis].constant())}},
                   .types = {{.dtype = array.dtype, .shape = {array.shape[axis]}}}});
    Shape spread(array.shape.size(), Size(1));
    spread[axis] = array.shape[axis];
    if (spread.size() == 1) {
      terms.push_back({range, 0});
      continue;
    }
    terms.push_back({graph.add({.name = name + "/spread",
                                .op = "reshape",
                                .inputs = {{range, 0}},
                                .types = {{.dtype = array.dtype, .shape = spread}}}),
                     0});
  }
  if (terms.empty())
    terms.push_back({graph.add({.name = name,
                                .op = "constant",
                                .inputs = {},
                                .attributes = {{"values", std::vector<double>{static_cast<double>(
                                                              array.offset.constant())}}},
                                .types = {{.dtype = array.dtype, .shape = array.shape}}}),
                     0});
  Value sum = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i)
    sum = {graph.add({.name = name + "/sum", .op = "add", .inputs = {sum, terms[i]}}), 0};
  if (graph.type(sum).shape != array.shape)
    sum = {graph.add({.name = name + "/broadcast",
                      .op = "broadcast_to",
                      .inputs = {sum},
                      .types = {{.dtype = array.dtype, .shape = array.shape}}}),
           0};
  return sum;
}

}  // namespace lathe::io::onnx
