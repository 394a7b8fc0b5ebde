#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/label_kind.h"
#include "lathe/core/registry.h"

namespace lathe::models {

/// What a graph is built for.
struct BuildOptions {
  std::string task;                      ///< one of the family's tasks
  std::vector<std::string> inputs = {};  ///< the graph's inputs; empty: the task's usual ones
  std::int64_t num_labels = 2;
  LabelKind labels = LabelKind::Class;  ///< a class among one means a number
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
  /// Set where positions are counted from behind that id's number: that many fewer can be read.
  bool counts_behind_padding = false;
};

/// Where else than under its own name configurations of Hugging Face hold a key.
struct ConfigPlace {
  std::string key;
  /// Paths such as `rope_parameters.rope_theta`, which must say the same where several are there;
  /// where none is, it is written to the first. Empty: it stands under its name.
  std::vector<std::string> paths = {};
  /// What null stands for; nullopt: the same as nothing.
  std::optional<Attribute> null = std::nullopt;
};

/// What a graph computes in place of an input that it does not have: one value everywhere.
struct StandIn {
  std::string input;  ///< attention_mask
  std::string node;   ///< what the node is called that stands in for it
  std::string like;   ///< the input that gives the shape
  double value = 0;
};

/// A tensor that usually is another one under a second name.
struct TiedName {
  std::string name;   ///< in files
  std::string state;  ///< what it is the same as
  /// The flag of the configuration that says so. Where a file holds two that differ it is taken for
  /// false, and the graph has a state of each name; one that is written there as true is refused.
  std::string key;
};

/// How a family's states are called and laid out in Hugging Face's files. Endings are compared
/// with the ends of names.
struct TensorNaming {
  /// What stands before the base model's states, and is missing in a file of the base model alone.
  std::string base_prefix = {};
  /// Endings of states that files hold transposed.
  std::vector<std::string> transposed = {};
  /// Endings of tensors that say nothing: buffers that every program makes itself.
  std::vector<std::string> meaningless = {};
  /// Endings of tensors of the base model that files hold also where no graph reads them.
  std::vector<std::string> unread = {};
  /// Endings in older files, each with today's.
  std::vector<std::pair<std::string, std::string>> older = {};
  std::vector<TiedName> tied = {};
};

/// A job a family can do, and what Hugging Face calls the model that does it.
struct TaskRecord {
  std::string name;          ///< classify, tokens, mlm, causal-lm, encode
  std::string architecture;  ///< BertForSequenceClassification, ...
  /// Other models of Hugging Face whose files hold what the task needs.
  std::vector<std::string> other_architectures = {};
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
  /// Keys that mean something of their own when they are absent: written only where they are given.
  std::vector<std::string> keys_without_default = {};
  std::vector<ConfigPlace> config_places = {};  ///< of the keys that do not stand where they should
  std::vector<StandIn> stand_ins = {};
  TensorNaming naming = {};
  /// States of heads: a file made for another task lacks them, and they start fresh.
  std::vector<std::string> head_prefixes = {};
  /// Builds the padded form with the inputs that nothing stands in for and without a loss; fails on
  /// a configuration that no model can have.
  Graph (*build)(const AttributeReader& config, const BuildOptions& options);
  /// The keys that say how large parts of a graph are which passes may make smaller, with the
  /// values that this one shows (of its first layer, where layers are alike); null: there are none.
  Attributes (*read_sizes)(const Graph& graph, const Attributes& config) = nullptr;
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

/// Whether graphs for the task give a logit for each of a model's labels: `classify` for each
/// example, `tokens` for each token of it.
inline bool gives_labels(std::string_view task) {
  return task == "classify" || task == "tokens";
}

/// Builds the graph with the inputs asked for (`set_inputs`).
Graph build(const ModelFamily& family, const Attributes& config, const BuildOptions& options);

}  // namespace lathe::models
