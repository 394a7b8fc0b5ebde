#include "lathe/io/family_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lathe/core/quote_text.h"
#include "lathe/models/tensor_names.h"

namespace lathe::io {
namespace {

// Columns become rows; the bytes of an element are moved as they are.
Tensor transposed(const Tensor& tensor) {
  if (tensor.rank() != 2) return tensor;
  const auto rows = static_cast<std::size_t>(tensor.dim(0));
  const auto columns = static_cast<std::size_t>(tensor.dim(1));
  const auto size = static_cast<std::size_t>(size_of(tensor.dtype()));
  Tensor result(tensor.dtype(), {tensor.dim(1), tensor.dim(0)});
  std::byte* const to = result.mutable_bytes();
  const std::byte* const from = tensor.bytes();
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      std::memcpy(to + (j * rows + i) * size, from + (i * columns + j) * size, size);
  return result;
}

bool has_same_values(const Tensor& a, const Tensor& b) {
  return a.dims() == b.dims() && identical(a, b.converted(a.dtype()));
}

template <typename T, typename Test>
std::optional<std::int64_t> first_of(std::span<const T> values, Test test) {
  const auto found = std::ranges::find_if(values, test);
  if (found == values.end()) return std::nullopt;
  return found - values.begin();
}

// The first of the floats that passes the test.
template <typename Test>
std::optional<std::int64_t> find_float(const Tensor& tensor, Test test) {
  if (tensor.dtype() == DType::F32) return first_of(tensor.data<float>(), test);
  if (tensor.dtype() == DType::F64) return first_of(tensor.data<double>(), test);
  if (!is_floating(tensor.dtype())) return std::nullopt;
  return find_float(tensor.converted(DType::F32), test);
}

}  // namespace

State read_tensor_names(const models::ModelFamily& family, const State& tensors) {
  State result;
  for (const auto& [found, tensor] : tensors) {
    const std::string name = models::current_name(family, found);
    if (models::is_meaningless(family, name)) continue;
    if (!result.emplace(name, tensor).second)
      fail("tensor {}: {} is there already, under its old or its new name", quote_text(found),
           quote_text(name));
  }
  return result;
}

std::optional<FoundTensor> find_tensor(const models::ModelFamily& family, const Attributes& config,
                                       const State& tensors, const std::string& state) {
  std::vector<std::string> names = models::names_in_files(family, state);
  const AttributeReader keys(config, family.config);
  for (const models::TiedName& tied : family.naming.tied)
    if (tied.state == state && (keys.flag(tied.key) || models::belongs_to_head(family, state)))
      for (std::string& name : models::names_in_files(family, tied.name)) names.push_back(name);
  for (const std::string& name : names) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) continue;
    const bool is_transposed = models::is_transposed(family, state);
    return FoundTensor{name, is_transposed ? transposed(found->second) : found->second};
  }
  return std::nullopt;
}

std::vector<SecondName> find_second_names(const models::ModelFamily& family,
                                          const Attributes& config, const State& tensors) {
  std::vector<SecondName> found;
  for (const models::TiedName& tied : family.naming.tied) {
    const std::optional<FoundTensor> second = find_tensor(family, config, tensors, tied.name);
    const std::optional<FoundTensor> first = find_tensor(family, config, tensors, tied.state);
    if (!second || !first || first->name == second->name) continue;
    found.push_back({&tied, second->name, has_same_values(first->value, second->value)});
  }
  return found;
}

std::vector<std::string> parts_of_base(const models::ModelFamily& family, const State& tensors,
                                       const std::vector<std::string>& names) {
  const std::string& prefix = family.naming.base_prefix;
  const bool is_bare = std::ranges::none_of(
      tensors, [&](const auto& entry) { return entry.first.starts_with(prefix); });
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    const std::string full = name.starts_with(prefix) ? name : prefix + name;
    // A part may be there twice, with the prefix and without.
    const bool is_base = full == name || is_bare || tensors.contains(full);
    if (is_base && !models::belongs_to_head(family, full) &&
        !models::belongs_to_head(family, name) && !models::may_be_unread(family, full))
      parts.push_back(name);
  }
  return parts;
}

State to_file_layout(const models::ModelFamily& family, const State& state) {
  State result;
  for (const auto& [name, tensor] : state)
    result[name] = models::is_transposed(family, name) ? transposed(tensor) : tensor;
  return result;
}

Tensor fit_state(const Graph& graph, NodeId state, const FoundTensor& tensor) {
  const Type& type = graph.types(state)[0];
  if (tensor.value.dims() != type.dims({}))
    fail("tensor \"{}\" has shape {}, but the configuration expects {}", tensor.name,
         to_text(tensor.value.dims()), to_text(type.shape));
  if (!is_floating(tensor.value.dtype()) && is_floating(type.dtype))
    fail("tensor \"{}\" is {}: expected floating-point numbers", tensor.name,
         lathe::name(tensor.value.dtype()));
  return tensor.value.converted(type.dtype);
}

std::optional<std::int64_t> find_non_finite(const Tensor& tensor) {
  return find_float(tensor, [](auto value) { return !std::isfinite(value); });
}

std::optional<std::int64_t> find_nan(const Tensor& tensor) {
  return find_float(tensor, [](auto value) { return std::isnan(value); });
}

}  // namespace lathe::io
