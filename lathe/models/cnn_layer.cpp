#include "lathe/models/cnn_layer.h"

#include <charconv>

#include "lathe/core/error.h"

namespace lathe::models {
namespace {

constexpr std::int64_t kMostSize = 1 << 20;

// Takes a number off the front; nothing where there is none.
bool take_number(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0 || number > kMostSize) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool read_layer(std::string_view text, CnnLayer& layer) {
  using Kind = CnnLayer::Kind;
  switch (text.front()) {
    case 'c':
      layer = {.kind = Kind::Convolution, .kernel = 3};
      break;
    case 'r':
      layer = {.kind = Kind::Residual, .kernel = 3};
      break;
    case 'm':
      layer = {.kind = Kind::MaxPool};
      break;
    case 'a':
      layer = {.kind = Kind::AveragePool};
      break;
    default:
      return take_number(text, layer.size) && text.empty() && layer.size > 0;
  }
  text.remove_prefix(1);
  if (layer.kind == Kind::AveragePool && text.empty()) return true;
  if (!take_number(text, layer.size) || layer.size < 1) return false;
  const bool has_kernel = layer.kind == Kind::Convolution || layer.kind == Kind::Residual;
  while (!text.empty() && has_kernel) {
    const char option = text.front();
    text.remove_prefix(1);
    std::int64_t* const place = option == 'k'   ? &layer.kernel
                                : option == 's' ? &layer.stride
                                                : &layer.padding;
    // A residual pads so that images keep their size.
    const bool is_known =
        option == 'k' || option == 's' || (option == 'p' && layer.kind == Kind::Convolution);
    if (!is_known || !take_number(text, *place)) return false;
  }
  if (layer.kernel < 1 || layer.stride < 1 || !text.empty()) return false;
  if (layer.kind == Kind::Residual) layer.padding = (layer.kernel - 1) / 2;
  return layer.kind != Kind::Residual || layer.kernel % 2 == 1;
}

}  // namespace

std::vector<CnnLayer> parse_cnn_layers(std::string_view text) {
  std::vector<CnnLayer> layers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view one = text.substr(begin, end - begin);
    CnnLayer layer;
    if (one.empty() || !read_layer(one, layer))
      fail(
          "\"{}\" is no layer: expected c16k3s1p1 (convolution), r16k3s1 (residual, an odd "
          "kernel), m2 or a2 (pooling) or 120 (linear)",
          one);
    layers.push_back(layer);
    begin = end + 1;
  }
  return layers;
}

}  // namespace lathe::models
