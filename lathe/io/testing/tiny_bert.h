#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/tensor.h"
#include "lathe/data/wordpiece_tokenizer.h"
#include "lathe/io/safetensors.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io {

/// The configuration of a BERT that a reader can count: 1 layer, width 8, 20 words, 16 positions.
inline constexpr std::string_view kTinyConfig = R"({
  "model_type": "bert", "architectures": ["BertForSequenceClassification"],
  "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 20,
  "intermediate_size": 16, "max_position_embeddings": 16, "type_vocab_size": 2,
  "id2label": {"0": "bad", "1": "good"}, "transformers_version": "4.0.0", "use_cache": true
})";

/// 20 tokens: the special ones, then words and word ends.
inline std::vector<std::string> tiny_vocabulary() {
  return {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",    "the", "film", "fine", "poor",
          "very",  "not",   "but",   "plot",  "act",    "##or", "##s", ".",    ",",    "!"};
}

inline std::shared_ptr<const data::Tokenizer> tiny_tokenizer() {
  return std::make_shared<const data::WordpieceTokenizer>(
      data::WordpieceTokenizer::from_vocabulary(tiny_vocabulary()));
}

/// The tensors that Hugging Face saves for this configuration with a classifier of two labels.
/// Their values differ from each other and lie within -1 and 1.
inline State tiny_weights() {
  const std::string layer = "bert.encoder.layer.0.";
  const std::map<std::string, std::vector<std::int64_t>> shapes{
      {"bert.embeddings.word_embeddings.weight", {20, 8}},
      {"bert.embeddings.position_embeddings.weight", {16, 8}},
      {"bert.embeddings.token_type_embeddings.weight", {2, 8}},
      {"bert.embeddings.LayerNorm.weight", {8}},
      {"bert.embeddings.LayerNorm.bias", {8}},
      {layer + "attention.self.query.weight", {8, 8}},
      {layer + "attention.self.query.bias", {8}},
      {layer + "attention.self.key.weight", {8, 8}},
      {layer + "attention.self.key.bias", {8}},
      {layer + "attention.self.value.weight", {8, 8}},
      {layer + "attention.self.value.bias", {8}},
      {layer + "attention.output.dense.weight", {8, 8}},
      {layer + "attention.output.dense.bias", {8}},
      {layer + "attention.output.LayerNorm.weight", {8}},
      {layer + "attention.output.LayerNorm.bias", {8}},
      {layer + "intermediate.dense.weight", {16, 8}},
      {layer + "intermediate.dense.bias", {16}},
      {layer + "output.dense.weight", {8, 16}},
      {layer + "output.dense.bias", {8}},
      {layer + "output.LayerNorm.weight", {8}},
      {layer + "output.LayerNorm.bias", {8}},
      {"bert.pooler.dense.weight", {8, 8}},
      {"bert.pooler.dense.bias", {8}},
      {"classifier.weight", {2, 8}},
      {"classifier.bias", {2}}};
  State weights;
  std::uint32_t random = 1;  // any numbers do, so long as they are the same every time
  for (const auto& [name, dims] : shapes) {
    Tensor tensor(DType::F32, dims);
    for (float& value : tensor.mutable_data<float>()) {
      random = random * 1664525u + 1013904223u;
      value = static_cast<float>(static_cast<int>(random >> 20) - 2048) / 2048.0f;
    }
    weights[name] = tensor;
  }
  return weights;
}

/// Writes a Hugging Face directory and gives its path as load_model takes it.
inline std::string write_tiny_bert(const ScratchDirectory& scratch, std::string_view name,
                                   const State& weights = tiny_weights(),
                                   std::string_view config = kTinyConfig) {
  const std::string folder(name);
  std::filesystem::create_directory(scratch / folder);
  scratch.write(folder + "/config.json", config);
  std::string vocabulary;
  for (const std::string& token : tiny_vocabulary()) vocabulary += token + "\n";
  scratch.write(folder + "/vocab.txt", vocabulary);
  write_safetensors(scratch / (folder + "/model.safetensors"), weights);
  return (scratch / folder).string();
}

}  // namespace lathe::io
