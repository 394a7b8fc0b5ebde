#include "lathe/io/model_family.h"

#include <filesystem>

#include "lathe/io/json_file.h"
#include "lathe/io/model.h"
#include "lathe/io/model_config.h"
#include "lathe/io/preprocessor_config.h"

namespace lathe::io {

const models::ModelFamily& model_family(const std::string& directory_or_name) {
  if (const auto named = models::find_named_model(directory_or_name)) return *named->family;
  const std::filesystem::path config_path =
      std::filesystem::path(directory_or_name) / "config.json";
  std::error_code error;
  if (std::filesystem::is_regular_file(config_path, error)) {
    const nlohmann::json config = read_json(config_path);
    const auto type = config.is_object() ? config.find("model_type") : config.end();
    if (type != config.end() && type->is_string())
      if (const models::ModelFamily* family =
              models::FamilyRegistry::instance().find(type->get<std::string>()))
        return *family;
  }
  // Whatever is wrong or left out there, loading says or finds it.
  return *load_model(directory_or_name).family;
}

Reading model_reading(const std::string& directory_or_name) {
  const std::filesystem::path config_path =
      std::filesystem::path(directory_or_name) / "config.json";
  std::error_code error;
  if (models::find_named_model(directory_or_name) ||
      !std::filesystem::is_regular_file(config_path, error))
    return {};
  return with_place(config_path.string(), [&] { return read_reading(read_json(config_path)); });
}

data::ImageReading model_images(const std::string& directory_or_name) {
  if (models::find_named_model(directory_or_name)) return {};
  return read_images_of(directory_or_name, model_family(directory_or_name));
}

}  // namespace lathe::io
