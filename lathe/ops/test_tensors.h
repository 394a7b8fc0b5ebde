#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lathe/ops/elements.h"
#include "lathe/ops/example.h"

/// Short ways for tests to write tensors down and to read them and errors back.
namespace lathe::ops {

inline Tensor f32(std::vector<std::int64_t> dims, std::initializer_list<float> values) {
  return Tensor::from<float>(std::move(dims), values);
}
inline Tensor i32(std::vector<std::int64_t> dims, std::initializer_list<std::int32_t> values) {
  return Tensor::from<std::int32_t>(std::move(dims), values);
}
inline Tensor i64(std::vector<std::int64_t> dims, std::initializer_list<std::int64_t> values) {
  return Tensor::from<std::int64_t>(std::move(dims), values);
}

/// The elements of the first result of a call, as floats whatever its dtype.
inline std::vector<float> result_of(std::string_view call, const std::vector<Tensor>& inputs) {
  const std::vector<double> elements = read_elements(evaluate(call, inputs).at(0));
  return {elements.begin(), elements.end()};
}

/// The type that the shape rule gives a call.
inline std::string type_of(std::string_view call) {
  const Example example = parse_example(call);
  return to_text(example.graph.types(example.node).at(0));
}

/// The message of the user error that `body` throws, from the node's name on; "no error" otherwise.
template <typename Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const UserError& error) {
    const std::string message = error.message();
    const std::size_t node = message.find("node \"");
    return node == std::string::npos ? message : message.substr(node);
  }
  return "no error";
}
/// The message with which the shape rule refuses a call.
inline std::string refusal_of(std::string_view call) {
  return message_of([&] { verify(parse_example(call).graph); });
}

}  // namespace lathe::ops
