#pragma once

#include <random>

#include "lathe/core/graph_text.h"
#include "lathe/io/model.h"
#include "lathe/train/text_source.h"

namespace lathe::compress {

/// Tokens look up their features; two linears follow each other.
inline io::Model two_layers() {
  io::Model model;
  model.graph = parse_graph(R"(
    input_ids = input() : i32[B,L]
    table = state() : f32[5,3]
    e = embedding(input_ids, table)
    w = state() : f32[4,3]
    b = state() : f32[4]
    h = linear(e, w, b)
    a = relu(h)
    v = state() : f32[2,4]
    c = state() : f32[2]
    y = linear(a, v, c)
    output logits <- y
  )");
  std::mt19937 random(3);
  for (const NodeId id : model.graph.nodes_of("state")) {
    Tensor tensor(DType::F32, model.graph.types(id)[0].dims({}));
    for (float& value : tensor.mutable_data<float>())
      value = static_cast<float>(random() % 1000) / 500 - 0.7f;
    model.state[model.graph.name(id)] = tensor;
  }
  return model;
}

/// Eight tokens in three texts.
inline std::vector<std::int32_t> text_ids() {
  return {0, 1, 4, 2, 2, 3, 4, 0};
}
inline train::ExampleSource& texts() {
  static train::TokenizedTexts source(
      {.ids = text_ids(), .offsets = {0, 3, 4, 8}, .labels = {0, 1, 0}}, {});
  return source;
}

}  // namespace lathe::compress
