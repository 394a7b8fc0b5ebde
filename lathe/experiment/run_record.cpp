#include "lathe/experiment/run_record.h"

#include "lathe/core/error.h"
#include "lathe/core/utf8_text.h"
#include "lathe/experiment/model_list.h"
#include "lathe/experiment/recorded_options.h"

namespace lathe::experiment {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// How an option stands in JSON: as itself, or, where its type is a choice, as the choice's name.
template <typename T>
json write(const T& value) {
  return value;
}
json write(const std::optional<data::Truncation>& value) {
  return value ? json(std::string(data::name(*value))) : json();
}
json write(data::Header value) {
  return std::string(data::name(value));
}
json write(train::Decay value) {
  return std::string(train::name(value));
}
json write(train::OptimizerKind value) {
  return std::string(train::name(value));
}
template <typename T>
void read(const json& text, T& value) {
  text.get_to(value);
}
void read(const json& text, std::optional<data::Truncation>& value) {
  value = std::nullopt;
  if (!text.is_null()) value = data::parse_truncation(text.get<std::string>());
}
void read(const json& text, data::Header& value) {
  value = data::parse_header(text.get<std::string>());
}
void read(const json& text, train::Decay& value) {
  value = train::parse_decay(text.get<std::string>());
}
void read(const json& text, train::OptimizerKind& value) {
  value = train::parse_optimizer(text.get<std::string>());
}

// Everything that decides the weights, by the name users know it under.
template <typename Options, typename Visit>
void each_option(Options& options, Visit visit) {
  visit("model", options.model);
  visit("data", options.data);
  visit("tokenizer", options.tokenizer);
  visit("split", options.split);
  visit("text-column", options.text_column);
  visit("label-column", options.label_column);
  visit("header", options.header);
  visit("label-separator", options.label_separator);
  visit("labels", options.labels);
  visit("new-head", options.new_head);
  visit("class-weights", options.class_weights);
  visit("limit", options.limit);
  visit("length", options.length);
  visit("truncation", options.truncation);
  visit("images", options.images);
  visit("augment", options.augment);
  visit("mask", options.mask);
  visit("validation", options.validation);
  auto& trainer = options.trainer;
  visit("epochs", trainer.epochs);
  visit("cycles", trainer.cycles);
  visit("steps", trainer.max_steps);
  visit("batch-size", trainer.batch_examples);
  visit("batch-tokens", trainer.batch_tokens);
  visit("accumulate", trainer.accumulation);
  visit("lr", trainer.learning_rate);
  visit("schedule", trainer.decay);
  visit("warmup", trainer.warmup);
  visit("ended", trainer.ended);
  visit("balanced", trainer.is_balanced);
  visit("seed", trainer.seed);
  visit("validate-every", trainer.validate_every);
  visit("patience", trainer.patience);
  visit("checkpoint-every", trainer.checkpoint_every);
  auto& graph = options.graph;
  visit("objective", graph.objective);
  visit("optimizer", graph.optimizer);
  visit("momentum", graph.momentum);
  visit("weight-decay", graph.weight_decay);
  visit("clip", graph.max_norm);
  visit("freeze", graph.freeze);
  visit("dropout", graph.dropout);
  visit("lora", options.lora);
  visit("prune", options.prune);
  visit("teacher", options.teacher);
  visit("teacher-sha256", options.teacher_hashes);
  visit("teacher-cache", options.teacher_cache);
  visit("teacher-weight", graph.distillation.weight);
  visit("temperature", graph.distillation.temperature);
  visit("teacher-hidden", graph.distillation.hidden);
  visit("teacher-attention", graph.distillation.attention);
}

std::string absolute_list(const std::string& models) {
  if (models.empty()) return models;
  std::string result;
  for (const std::string& model : model_list(models))
    result += (result.empty() ? "" : ",") + recorded_path(model);
  return result;
}

// A directory that need not be there yet.
std::string absolute_directory(const std::string& given) {
  std::error_code error;
  if (given.empty()) return given;
  const fs::path path = fs::weakly_canonical(fs::absolute(given, error), error);
  return error ? given : path.string();
}

// Runs recorded before options had names of their own wrote flags: `--epochs`, `--vocabulary`.
json upgraded(const json& recorded) {
  json result = json::object();
  for (const auto& [key, value] : recorded.items()) {
    if (key == "--vocabulary")
      result["tokenizer"] = value;
    else if (key == "--no-dropout")
      result["dropout"] = !value.get<bool>();
    else
      result[key.starts_with("--") ? key.substr(2) : key] = value;
  }
  return result;
}

}  // namespace

json to_json(const FineTuneOptions& options) {
  FineTuneOptions absolute = options;
  for (std::string* path : {&absolute.model, &absolute.data, &absolute.tokenizer})
    *path = recorded_path(*path);
  absolute.teacher = absolute_list(options.teacher);
  absolute.teacher_cache = escape_bytes(absolute_directory(options.teacher_cache));
  json result = json::object();
  each_option(absolute, [&](const char* name, const auto& value) { result[name] = write(value); });
  return result;
}

void take_recorded(FineTuneOptions& options, const json& recorded,
                   const std::set<std::string>& given) {
  const json asked = to_json(options), known = upgraded(recorded);
  each_option(options, [&](const char* name, auto& value) {
    const auto found = known.find(name);
    if (found == known.end()) return;
    if (given.contains(name) && asked[name] != *found)
      throw UserError(fmt::format("{} {}: the run in {} was started with {}", name,
                                  asked[name].dump(), options.out.string(), found->dump()),
                      "leave the option out to go on with it, or start another run");
    with_place((options.out / "run.json").string(), [&] {
      try {
        read(*found, value);
      } catch (const json::exception&) {
        fail("\"{}\" is {}, which is not a value of its kind", name, found->dump());
      }
    });
  });
  for (std::string* path :
       {&options.model, &options.data, &options.tokenizer, &options.teacher_cache})
    *path = path_of_record(*path);
}

void set_options(FineTuneOptions& options, const json& values) {
  std::vector<std::string> names;
  each_option(options, [&](const char* name, auto& value) {
    names.emplace_back(name);
    const auto found = values.find(name);
    if (found == values.end()) return;
    try {
      read(*found, value);
    } catch (const json::exception&) {
      fail("{} = {}: is not a value of its kind", name, found->dump());
    }
  });
  for (const auto& [name, value] : values.items())
    if (std::ranges::find(names, name) == names.end()) throw unknown_name("option", name, names);
}

}  // namespace lathe::experiment
