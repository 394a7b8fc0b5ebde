#include "lathe/data/tokenizer_source.h"

#include "lathe/core/error.h"
#include "lathe/core/json_reader.h"
#include "lathe/data/text_file.h"

namespace lathe::data {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

}  // namespace

TokenizerSource::TokenizerSource(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code error;
  is_file_ = std::filesystem::is_regular_file(path_, error);
  if (has(kTokenizerJson)) json_ = read_object(kTokenizerJson);
}

bool TokenizerSource::has(std::string_view name) const {
  return is_file_ ? name == kTokenizerJson : find_file(path_, std::string(name)).has_value();
}

std::string TokenizerSource::place(std::string_view name) const {
  if (is_file_) return path_.string();
  return find_file(path_, std::string(name)).value_or(path_ / name).string();
}

std::string TokenizerSource::read(std::string_view name) const {
  return read_text_file(place(name), kMostBytes);
}

nlohmann::json TokenizerSource::read_object(std::string_view name) const {
  if (!has(name)) return nlohmann::json::object();
  nlohmann::json json = parse_json(read(name), place(name));
  if (!json.is_object()) fail("{}: is not a JSON object", place(name));
  return json;
}

std::string TokenizerSource::model_type() const {
  if (!json_) return {};
  const auto model = json_->find("model");
  if (model == json_->end() || !model->is_object()) return {};
  const auto type = model->find("type");
  return type != model->end() && type->is_string() ? type->get<std::string>() : std::string();
}

}  // namespace lathe::data
