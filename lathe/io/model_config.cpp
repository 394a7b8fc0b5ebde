#include "lathe/io/model_config.h"

#include <algorithm>
#include <charconv>

#include "lathe/core/json_reader.h"

namespace lathe::io {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostLabels = 1'000'000;
constexpr const char* kReadingKey = "lathe";

json to_json(const Reading& reading) {
  json result = json::object();
  if (reading.length > 0) result["length"] = reading.length;
  result["truncation"] = name(reading.truncation);
  if (!reading.text_columns.empty()) result["text_columns"] = reading.text_columns;
  if (!reading.label_columns.empty()) result["label_columns"] = reading.label_columns;
  result["label_separator"] = reading.label_separator;
  return result;
}

std::string shown(const json& value) {
  const std::string text = value.dump();
  return text.size() > 60 ? text.substr(0, 60) + "..." : text;
}

// A list of texts is the same as one with strokes between them, as Hugging Face reads either.
std::optional<std::string> joined_texts(const json& value) {
  if (!value.is_array()) return std::nullopt;
  std::string joined;
  for (const json& item : value) {
    if (!item.is_string()) return std::nullopt;
    joined += (joined.empty() ? "" : "|") + item.get<std::string>();
  }
  return joined;
}

Attribute read_attribute(const AttributeSpec& spec, const json& value) {
  const AttributeKind kind = kind_of(spec.default_value);
  switch (kind) {
    case AttributeKind::Flag:
      if (value.is_boolean()) return value.get<bool>();
      break;
    case AttributeKind::Integer:
      if (value.is_number_integer() &&
          (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX}))
        return value.get<std::int64_t>();
      break;
    case AttributeKind::Real:
      if (value.is_number()) return value.get<double>();
      break;
    case AttributeKind::Text:
      if (value.is_string()) return value.get<std::string>();
      if (const std::optional<std::string> list = joined_texts(value)) return *list;
      break;
    case AttributeKind::Integers: {
      if (!value.is_array()) break;
      std::vector<std::int64_t> list;
      for (const json& item : value) {
        if (!item.is_number_integer()) fail("{}: expected {}", spec.name, name(kind));
        list.push_back(item.get<std::int64_t>());
      }
      return list;
    }
    case AttributeKind::Reals: {
      if (!value.is_array()) break;
      std::vector<double> list;
      for (const json& item : value) {
        if (!item.is_number()) fail("{}: expected {}", spec.name, name(kind));
        list.push_back(item.get<double>());
      }
      return list;
    }
  }
  fail("{} is {}: expected {}", spec.name, shown(value), name(kind));
}

json to_json(const Attribute& attribute) {
  return std::visit([](const auto& value) { return json(value); }, attribute);
}

// Where a family's key stands in configurations.
models::ConfigPlace place_of(const models::ModelFamily& family, const std::string& key) {
  models::ConfigPlace place{.key = key, .paths = {key}};
  for (const models::ConfigPlace& known : family.config_places) {
    if (known.key != key) continue;
    place.null = known.null;
    if (!known.paths.empty()) place.paths = known.paths;
  }
  return place;
}

json::json_pointer to_pointer(std::string_view path) {
  json::json_pointer pointer;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    pointer.push_back(std::string(path.substr(begin, end - begin)));
    begin = end + 1;
  }
  return pointer;
}

// The first of the paths at which something stands, null too; nullopt where nothing does.
std::optional<json::json_pointer> find_path(const json& config,
                                            const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (const json::json_pointer pointer = to_pointer(path); config.contains(pointer))
      return pointer;
  return std::nullopt;
}

// Fails where something else than an object stands on the way to a path.
void check_way(const json& config, std::string_view path) {
  for (std::size_t end = path.find('.'); end != path.npos; end = path.find('.', end + 1)) {
    const json::json_pointer way = to_pointer(path.substr(0, end));
    if (!config.contains(way)) return;
    if (const json& there = config.at(way); !there.is_object() && !there.is_null())
      fail("{} is {}: expected an object", path.substr(0, end), shown(there));
  }
}

// What stands at the paths of a key, all of which must say the same; nullopt where nothing does.
std::optional<Attribute> read_places(const AttributeSpec& spec, const models::ConfigPlace& place,
                                     const json& config) {
  std::optional<Attribute> read;
  std::string_view read_at;
  bool has_null = false;
  for (const std::string& path : place.paths) {
    check_way(config, path);
    const json::json_pointer pointer = to_pointer(path);
    if (!config.contains(pointer)) continue;
    const json& found = config.at(pointer);
    has_null |= found.is_null();
    if (found.is_null()) continue;
    const Attribute value = read_attribute(spec, found);
    if (read && *read != value)
      fail("{} is {} and {} is {}: expected the same", read_at, to_text(*read), path,
           to_text(value));
    read = value;
    read_at = path;
  }
  return !read && has_null ? place.null : read;
}

// Writes a value and the objects on the way to it.
void write_path(json& config, const json::json_pointer& pointer, json value) {
  const json::json_pointer parent = pointer.parent_pointer();
  if (!parent.empty() && (!config.contains(parent) || !config.at(parent).is_object()))
    write_path(config, parent, json::object());
  config[pointer] = std::move(value);
}

}  // namespace

Attributes read_family_config(const models::ModelFamily& family, const json& config) {
  if (!config.is_object()) fail("expected an object of configuration keys");
  Attributes result;
  for (const AttributeSpec& spec : family.config) {
    const models::ConfigPlace place = place_of(family, spec.name);
    if (std::optional<Attribute> value = read_places(spec, place, config))
      result[spec.name] = *std::move(value);
  }
  check_attributes(result, family.config);
  return result;
}

std::vector<std::string> read_label_names(const json& config) {
  std::vector<std::string> names;
  if (const auto labels = config.find("id2label"); labels != config.end() && !labels->is_null()) {
    if (!labels->is_object()) fail("id2label: expected an object of numbers and names");
    names.resize(labels->size());
    std::vector<bool> seen(names.size());
    for (const auto& [key, value] : labels->items()) {
      std::size_t index = 0;
      const char* const end = key.data() + key.size();
      const auto [stop, error] = std::from_chars(key.data(), end, index);
      if (error != std::errc{} || stop != end || index >= names.size() || seen[index] ||
          !value.is_string())
        fail("id2label: \"{}\" is no label: expected numbers 0 to {} with a name each", key,
             names.size() - 1);
      names[index] = value.get<std::string>();
      seen[index] = true;
    }
    if (!names.empty()) return names;
  }
  std::int64_t count = 2;
  if (const auto labels = config.find("num_labels"); labels != config.end() && !labels->is_null()) {
    if (!labels->is_number_integer() || labels->get<std::int64_t>() < 1 ||
        labels->get<std::int64_t>() > kMostLabels)
      fail("num_labels is {}: expected 1 to {}", labels->dump(), kMostLabels);
    count = labels->get<std::int64_t>();
  }
  for (std::int64_t i = 0; i < count; ++i) names.push_back(fmt::format("LABEL_{}", i));
  return names;
}

LabelKind read_label_kind(const json& config, std::size_t num_labels) {
  if (const auto problem = config.find("problem_type");
      problem != config.end() && !problem->is_null()) {
    const std::optional<LabelKind> kind =
        problem->is_string() ? find_label_kind(problem->get<std::string>()) : std::nullopt;
    if (!kind)
      fail(
          "problem_type is {}: expected single_label_classification, multi_label_classification "
          "or regression",
          problem->dump());
    return *kind;
  }
  return num_labels == 1 ? LabelKind::Number : LabelKind::Class;
}

Reading read_reading(const json& config) {
  Reading reading;
  const auto found = config.find(kReadingKey);
  if (found == config.end() || !found->is_object()) return reading;
  try {
    reading.length = found->value("length", reading.length);
    reading.truncation =
        data::parse_truncation(found->value("truncation", std::string(name(reading.truncation))));
    reading.text_columns = found->value("text_columns", reading.text_columns);
    reading.label_columns = found->value("label_columns", reading.label_columns);
    reading.label_separator = found->value("label_separator", reading.label_separator);
  } catch (const json::exception&) {
    fail("{}: has a value that is not of its kind: {}", kReadingKey, found->dump());
  }
  if (reading.length < 0) fail("{}: length is {}: expected 0 or more", kReadingKey, reading.length);
  return reading;
}

std::optional<std::string> read_task(const models::ModelFamily& family, const json& config) {
  // A decoder's head on a model that attends both ways does not predict the next token.
  const auto has_keys = [&](const models::TaskRecord& task) {
    for (const auto& [key, value] : task.config) {
      const auto found = config.find(key);
      if (found == config.end() || *found != to_json(value)) return false;
    }
    return true;
  };
  const auto architectures = config.find("architectures");
  if (architectures == config.end() || !architectures->is_array()) {
    for (const models::TaskRecord& task : family.tasks)
      if (!task.config.empty() && has_keys(task)) return task.name;
    return std::nullopt;
  }
  for (const json& architecture : *architectures) {
    if (!architecture.is_string()) continue;
    const auto name = architecture.get<std::string>();
    for (const models::TaskRecord& task : family.tasks)
      if (task.architecture == name && has_keys(task)) return task.name;
    for (const models::TaskRecord& task : family.tasks)
      if (std::ranges::find(task.other_architectures, name) != task.other_architectures.end() &&
          has_keys(task))
        return task.name;
  }
  return std::nullopt;
}

json write_config(const Model& model) {
  json config =
      model.config_text.empty() ? json::object() : parse_json(model.config_text, "config.json");
  config["model_type"] = model.family->name;
  config["architectures"] = {models::find_task(*model.family, model.task).architecture};
  for (const AttributeSpec& spec : model.family->config) {
    const models::ConfigPlace place = place_of(*model.family, spec.name);
    const std::optional<json::json_pointer> there = find_path(config, place.paths);
    const json::json_pointer path = there.value_or(to_pointer(place.paths.front()));
    const auto given = model.config.find(spec.name);
    // What says the same already stays as it is: a list of texts stays a list.
    if (given != model.config.end() && there && !config.at(*there).is_null() &&
        read_attribute(spec, config.at(*there)) == given->second)
      continue;
    if (given != model.config.end())
      write_path(config, path,
                 place.null && given->second == *place.null ? json() : to_json(given->second));
    else if (!there && std::ranges::count(model.family->keys_without_default, spec.name) == 0)
      write_path(config, path, to_json(spec.default_value));
  }
  // The weights are written as float32, whatever the file they came from held.
  config.erase("torch_dtype");
  config["dtype"] = "float32";
  if (models::gives_labels(model.task) && !model.label_names.empty()) {
    json id2label = json::object(), label2id = json::object();
    for (std::size_t i = 0; i < model.label_names.size(); ++i) {
      id2label[std::to_string(i)] = model.label_names[i];
      label2id[model.label_names[i]] = i;
    }
    config.erase("num_labels");
    config["id2label"] = id2label;
    config["label2id"] = label2id;
    if (model.task == "classify") config["problem_type"] = problem_type(model.labels);
  }
  if (model.reading != Reading())
    config[kReadingKey] = to_json(model.reading);
  else
    config.erase(kReadingKey);
  return config;
}

}  // namespace lathe::io
