#include "lathe/search/parent_weights.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/train/training_graph.h"

namespace lathe::search {
namespace {

// The number behind ".layer." of a state's name, and where it stands.
struct LayerNumber {
  std::size_t begin = 0, size = 0;
  std::int64_t number = 0;
};
std::optional<LayerNumber> layer_number(const std::string& name) {
  constexpr std::string_view kLayer = ".layer.";
  const std::size_t place = name.find(kLayer);
  if (place == std::string::npos) return std::nullopt;
  LayerNumber found{.begin = place + kLayer.size()};
  const char* const begin = name.data() + found.begin;
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), found.number);
  if (error != std::errc{}) return std::nullopt;
  found.size = static_cast<std::size_t>(end - begin);
  return found;
}

std::int64_t num_layers(const State& state) {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : state)
    if (const auto layer = layer_number(name)) count = std::max(count, layer->number + 1);
  return count;
}

// Copies the corner that both have; the shapes differ in their sizes alone. Returns how much.
std::int64_t copy_corner(const Tensor& from, Tensor& to) {
  const auto& source = from.dims();
  const auto& target = to.dims();
  const std::size_t rank = target.size();
  const std::int64_t width = rank == 0 ? 1 : std::min(source.back(), target.back());
  const auto values = from.data<float>();
  const auto changed = to.mutable_data<float>();
  std::vector<std::int64_t> index(rank, 0);
  std::int64_t copied = 0;
  while (true) {
    std::int64_t read = 0, write = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      read = read * source[axis] + index[axis];
      write = write * target[axis] + index[axis];
    }
    std::copy_n(values.begin() + read, width, changed.begin() + write);
    copied += width;
    std::size_t axis = rank < 2 ? 0 : rank - 1;  // the last is copied whole
    while (axis > 0 && ++index[axis - 1] == std::min(source[axis - 1], target[axis - 1])) {
      index[axis - 1] = 0;
      --axis;
    }
    if (axis == 0) return copied;
  }
}

}  // namespace

double take_weights(io::Model& model, const io::Model& parent) {
  const std::int64_t layers = num_layers(parent.state);
  std::int64_t taken = 0, all = 0;
  for (auto& [name, tensor] : model.state) {
    all += tensor.num_elements();
    std::string source = name;
    if (const auto layer = layer_number(name); layer && layers > 0 && layer->number >= layers)
      source.replace(layer->begin, layer->size, std::to_string(layers - 1));
    const auto found = parent.state.find(source);
    if (found == parent.state.end() || found->second.dtype() != DType::F32 ||
        tensor.dtype() != DType::F32 || found->second.dims().size() != tensor.dims().size())
      continue;
    Tensor grown = tensor;
    const std::int64_t copied = copy_corner(found->second, grown);
    taken += copied;
    const bool is_fresh = std::ranges::find(parent.fresh, source) != parent.fresh.end();
    if (copied == tensor.num_elements() && !is_fresh) std::erase(model.fresh, name);
    tensor = std::move(grown);
  }
  check(all > 0, "a model with parameters");
  return static_cast<double>(taken) / static_cast<double>(all);
}

State cut_states(const State& whole, const State& smaller) {
  State result;
  for (const auto& [name, tensor] : smaller) {
    Tensor cut = tensor;
    if (tensor.dtype() == DType::F32) copy_corner(whole.at(name), cut);
    for (const std::string& moment : train::possible_moments(name))
      if (const auto found = whole.find(moment); found != whole.end()) {
        Tensor cut_moment(DType::F32, tensor.dims());
        copy_corner(found->second, cut_moment);
        result.emplace(moment, std::move(cut_moment));
      }
    result.emplace(name, std::move(cut));
  }
  return result;
}

void return_states(State& whole, const State& smaller) {
  for (const auto& [name, tensor] : smaller)
    if (const auto found = whole.find(name); found != whole.end() && tensor.dtype() == DType::F32)
      copy_corner(tensor, found->second);
}

}  // namespace lathe::search
