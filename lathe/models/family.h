#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/registry.h"

namespace lathe::models {

/// What a graph is built for.
struct BuildOptions {
  std::string task;                      ///< one of the family's tasks
  std::vector<std::string> inputs = {};  ///< the graph's inputs; empty: the task's usual ones
  std::int64_t num_labels = 2;           ///< 1 means regression
};

/// What a family's graphs are fed with.
enum class Reads {
  Tokens,    ///< texts as ids: the inputs `input_ids` and, padded, `attention_mask`
  Features,  ///< rows of numbers
  Image,     ///< channels of pixels
};

/// Where the configuration of a family that reads tokens says what tokenizers and batches must
/// know, by key; empty where it says nothing.
struct TokenKeys {
  std::string vocabulary = {};  ///< number of ids
  std::string length = {};      ///< tokens of the longest sequence
  std::string padding = {};     ///< the id that fills padded rows
};

/// A job a family can do, and what Hugging Face calls the model that does it.
struct TaskRecord {
  std::string name;                               ///< classify, mlm, causal-lm, encode
  std::string architecture;                       ///< BertForSequenceClassification, ...
  std::vector<std::string> inputs;                ///< those of a graph nobody chose inputs for
  std::vector<std::string> optional_inputs = {};  ///< others it can have
  Attributes config = {};                         ///< keys whose values the task fixes
  /// The node where the task's own layers begin: they are needed for predicted tokens alone.
  std::string head = {};
  /// The layer that gives a logit for each label, whose number may change; empty: it may not.
  std::string label_layer = {};
};

/// An architecture that builds graphs from a configuration.
struct ModelFamily {
  std::string name;  ///< `model_type` in config.json
  std::string summary;
  Reads reads = Reads::Tokens;
  TokenKeys token_keys = {};
  std::vector<TaskRecord> tasks;
  std::vector<AttributeSpec> config;          ///< the keys it reads, with Hugging Face's defaults
  std::map<std::string, Attributes> presets;  ///< `bert-tiny`, ... as differences from the defaults
  /// What stands before the encoder's states, and may be missing in a file of the encoder alone.
  std::string base_prefix = {};
  /// States of heads: a file made for another task lacks them, and they start fresh.
  std::vector<std::string> head_prefixes = {};
  /// Builds the padded form; fails on a configuration that no model can have.
  Graph (*build)(const AttributeReader& config, const BuildOptions& options);
  /// For names with arguments (`mlp:4,8`): the configuration they stand for; null where none do.
  Attributes (*parse_arguments)(std::string_view arguments) = nullptr;
};

using FamilyRegistry = Registry<ModelFamily>;

/// A family with its configuration, from a builder's name: `bert-tiny`, `mlp:4,8`.
struct NamedModel {
  const ModelFamily* family = nullptr;
  Attributes config;
};
/// Whether `name` is a builder's name; nullopt when it is none (it may be a directory then).
std::optional<NamedModel> find_named_model(std::string_view name);
/// Every builder's name, for messages: bert-base, bert-mini, bert-tiny, mlp:...
std::vector<std::string> named_models();

/// The record of a task of the family; fails listing the tasks it has.
const TaskRecord& find_task(const ModelFamily& family, std::string_view task);

/// Builds the graph; checks the inputs asked for against those the task knows.
Graph build(const ModelFamily& family, const Attributes& config, const BuildOptions& options);

}  // namespace lathe::models
