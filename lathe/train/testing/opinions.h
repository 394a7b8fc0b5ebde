#pragma once

#include <fmt/core.h>

#include "lathe/data/dataset.h"
#include "lathe/io/model.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::train {

/// Short texts of the words of io::tiny_tokenizer, half of them of each label.
inline data::Dataset opinions(int count) {
  data::Dataset dataset;
  dataset.label_names = {"negative", "positive"};
  const char* const endings[] = {"film", "plot .", "act , the film", "very film !"};
  for (int i = 0; i < count; ++i)
    dataset.examples.push_back(
        {fmt::format("a {} {}", i % 2 == 1 ? "fine" : "poor", endings[i / 2 % 4]), i % 2});
  return dataset;
}

/// A classifier of the published sizes, with a vocabulary of twenty words.
inline io::Model bert_tiny_of_twenty_words() {
  io::LoadOptions options;
  options.task = "classify";
  options.seed = 1;
  options.config = {{"vocab_size", std::int64_t{20}}};
  io::Model model = io::load_model("bert-tiny", options);
  model.tokenizer = io::tiny_tokenizer();
  return model;
}

}  // namespace lathe::train
