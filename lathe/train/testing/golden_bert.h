#pragma once

#include <algorithm>
#include <filesystem>

#include "lathe/core/json_reader.h"
#include "lathe/core/pass.h"
#include "lathe/io/model.h"

namespace lathe::train {

/// Reads the batch and the model that PyTorch's reference values were computed with.

inline Tensor tensor_of(const nlohmann::json& values, std::vector<std::int64_t> dims) {
  std::vector<float> floats;
  for (const nlohmann::json& value : values)
    floats.push_back(static_cast<float>(value.get<double>()));
  return Tensor::from<float>(std::move(dims), std::span<const float>(floats));
}

/// BERT-tiny with the pooler and classifier of the reference values.
inline io::Model golden_model(const nlohmann::json& golden, const std::filesystem::path& shared) {
  io::Model model =
      io::load_model((shared / "data/bert-tiny-imdb-mlm").string(), {.task = "classify"});
  model.state["bert.pooler.dense.weight"] = tensor_of(golden["pooler"]["weight"], {128, 128});
  model.state["bert.pooler.dense.bias"] = tensor_of(golden["pooler"]["bias"], {128});
  model.state["classifier.weight"] = tensor_of(golden["classifier"]["weight"], {2, 128});
  model.state["classifier.bias"] = tensor_of(golden["classifier"]["bias"], {2});
  return model;
}

inline Feed golden_feed(const nlohmann::json& golden, bool is_packed) {
  std::vector<std::int32_t> ids, offsets{0};
  std::size_t longest = 0;
  for (const nlohmann::json& row : golden["input_ids"]) longest = std::max(longest, row.size());
  const auto rows = static_cast<std::int64_t>(golden["input_ids"].size());
  std::vector<std::int32_t> padded(static_cast<std::size_t>(rows) * longest), mask(padded.size());
  std::size_t index = 0;
  for (const nlohmann::json& row : golden["input_ids"]) {
    for (std::size_t position = 0; position < row.size(); ++position) {
      ids.push_back(row[position].get<std::int32_t>());
      padded[index * longest + position] = ids.back();
      mask[index * longest + position] = 1;
    }
    offsets.push_back(static_cast<std::int32_t>(ids.size()));
    ++index;
  }
  Feed feed;
  const auto tensor = [](std::vector<std::int64_t> dims, const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>(std::move(dims), std::span<const std::int32_t>(values));
  };
  if (is_packed) {
    feed["input_ids"] = tensor({static_cast<std::int64_t>(ids.size())}, ids);
    feed["offsets"] = tensor({rows + 1}, offsets);
  } else {
    const std::vector<std::int64_t> dims{rows, static_cast<std::int64_t>(longest)};
    feed["input_ids"] = tensor(dims, padded);
    feed["attention_mask"] = tensor(dims, mask);
  }
  feed["labels"] = tensor({rows}, golden["labels"].get<std::vector<std::int32_t>>());
  return feed;
}

}  // namespace lathe::train
