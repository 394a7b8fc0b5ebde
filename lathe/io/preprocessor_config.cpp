#include "lathe/io/preprocessor_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/json_file.h"
#include "lathe/io/onnx/load_onnx.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// From this size on ConvNext's preparation squeezes images in place of cutting their middle out.
constexpr std::int64_t kSqueezedFrom = 384;

// The value of a key that is there and not null.
const json* find(const json& config, const std::string& key) {
  const auto found = config.find(key);
  return found == config.end() || found->is_null() ? nullptr : &*found;
}

bool flag(const json& config, const std::string& key, bool otherwise) {
  const json* const found = find(config, key);
  if (found == nullptr) return otherwise;
  if (!found->is_boolean()) fail("{} is {}: expected true or false", key, found->dump());
  return found->get<bool>();
}

std::int64_t whole_number(const json& value, const std::string& key) {
  if (!value.is_number_integer()) fail("{} is {}: expected a whole number", key, value.dump());
  return value.get<std::int64_t>();
}

double number(const json& value, const std::string& key) {
  if (!value.is_number()) fail("{} is {}: expected a number", key, value.dump());
  return value.get<double>();
}

const json& required(const json& config, const std::string& key, const char* flag) {
  const json* const found = find(config, key);
  if (found == nullptr) fail("{} is true, but {} is missing", flag, key);
  return *found;
}

std::string processor_of(const json& config) {
  for (const char* key : {"image_processor_type", "feature_extractor_type"})
    if (const json* const found = find(config, key); found != nullptr && found->is_string())
      return found->get<std::string>();
  return "";
}

bool begins(const std::string& processor, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return processor.starts_with(name); });
}

// Whether both sides of a size are there under these names.
bool has_sides(const json& size) {
  return size.is_object() && size.contains("height") && size.contains("width");
}

void read_resize(const json& config, data::ImageReading& reading) {
  const json& size = required(config, "size", "do_resize");
  const std::string processor = processor_of(config);
  if (const json* const way = find(config, "resample")) {
    const std::int64_t code = whole_number(*way, "resample");
    if (code < 0 || code > static_cast<std::int64_t>(data::Resample::Box))
      fail(
          "resample is {}: expected 0 (nearest), 1 (lanczos), 2 (bilinear), 3 (bicubic) or 4 (box)",
          code);
    reading.resample = static_cast<data::Resample>(code);
  }
  if (has_sides(size)) {
    reading.height = whole_number(size["height"], "size.height");
    reading.width = whole_number(size["width"], "size.width");
    return;
  }
  const bool is_named = size.is_object() && size.size() == 1 && size.contains("shortest_edge");
  if (!is_named && !size.is_number_integer())
    fail("size is {}: expected height and width, or shortest_edge", size.dump());
  const std::int64_t side = whole_number(is_named ? size["shortest_edge"] : size,
                                         is_named ? "size.shortest_edge" : "size");
  const json* const share = find(config, "crop_pct");
  if (share != nullptr || begins(processor, {"ConvNext"})) {
    const double part = share != nullptr ? number(*share, "crop_pct") : 224.0 / 256.0;
    if (!(part > 0 && part <= 1)) fail("crop_pct is {}: expected above 0 and at most 1", part);
    if (side >= kSqueezedFrom) {
      reading.height = reading.width = side;
      return;
    }
    reading.shortest = static_cast<std::int64_t>(static_cast<double>(side) / part);
    reading.crop_height = reading.crop_width = side;
    return;
  }
  // A number alone is a square to some programs and the shorter side to others.
  if (is_named || begins(processor, {"CLIP", "Bit"}))
    reading.shortest = side;
  else if (begins(processor, {"ViT", "DeiT"}))
    reading.height = reading.width = side;
  else
    fail("size is {}, which {} do not tell: expected height and width, or shortest_edge", side,
         processor.empty() ? "files without image_processor_type" : processor + "s");
}

void read_crop(const json& config, data::ImageReading& reading) {
  const json& size = required(config, "crop_size", "do_center_crop");
  if (has_sides(size)) {
    reading.crop_height = whole_number(size["height"], "crop_size.height");
    reading.crop_width = whole_number(size["width"], "crop_size.width");
  } else {
    reading.crop_height = reading.crop_width = whole_number(size, "crop_size");
  }
}

std::vector<double> channels(const json& config, const std::string& key) {
  const json& values = required(config, key, "do_normalize");
  if (values.is_number()) return {values.get<double>()};
  if (!values.is_array()) fail("{} is {}: expected a list of numbers", key, values.dump());
  std::vector<double> result;
  for (const json& value : values) result.push_back(number(value, key));
  return result;
}

fs::path directory_of(const fs::path& model) {
  if (!onnx::is_onnx_file(model)) return model;
  return model.has_parent_path() ? model.parent_path() : fs::path(".");
}

}  // namespace

data::ImageReading read_preprocessor_config(const json& config) {
  if (!config.is_object()) fail("expected an object of keys");
  constexpr std::array kKnown = {"do_resize", "do_center_crop", "do_rescale", "do_normalize",
                                 "do_convert_rgb"};
  // Others change pixels as well: to -1 to 1 (ViViT, EfficientNet), or normalized twice.
  constexpr std::array kOthers = {"offset", "rescale_offset", "include_top"};
  const auto is_unknown = [&](const std::string& key) {
    return key.starts_with("do_") ? std::ranges::find(kKnown, key) == kKnown.end()
                                  : std::ranges::find(kOthers, key) != kOthers.end();
  };
  for (const auto& [key, value] : config.items())
    if (is_unknown(key) && value == json(true)) fail("{} is true, which is not known here", key);
  data::ImageReading reading;
  reading.is_colour = flag(config, "do_convert_rgb", false);
  if (flag(config, "do_resize", find(config, "size") != nullptr)) read_resize(config, reading);
  if (flag(config, "do_center_crop", find(config, "crop_size") != nullptr))
    read_crop(config, reading);
  if (!flag(config, "do_rescale", true)) {
    reading.white = 255;
  } else if (const json* const factor = find(config, "rescale_factor")) {
    const double white = number(*factor, "rescale_factor") * 255;
    reading.white = std::abs(white - 1) < 1e-9 ? 1 : white;
  }
  if (flag(config, "do_normalize", find(config, "image_mean") != nullptr)) {
    reading.mean = channels(config, "image_mean");
    reading.deviation = channels(config, "image_std");
  }
  data::check_image_reading(reading);
  return reading;
}

json write_preprocessor_config(const data::ImageReading& reading) {
  json config{{"image_processor_type", "CLIPImageProcessor"},
              {"do_convert_rgb", reading.is_colour},
              {"do_resize", reading.height + reading.shortest > 0},
              {"do_center_crop", reading.crop_height > 0},
              {"do_rescale", reading.white != 255},
              {"do_normalize", !reading.mean.empty() || !reading.deviation.empty()}};
  if (reading.height > 0) config["size"] = {{"height", reading.height}, {"width", reading.width}};
  if (reading.shortest > 0) config["size"] = {{"shortest_edge", reading.shortest}};
  if (config["do_resize"]) config["resample"] = static_cast<int>(reading.resample);
  if (reading.crop_height > 0)
    config["crop_size"] = {{"height", reading.crop_height}, {"width", reading.crop_width}};
  if (reading.white != 255) config["rescale_factor"] = reading.white / 255;
  if (!config["do_normalize"]) return config;
  // One number for all channels is as many as the other list has.
  const std::size_t count = std::max(
      {reading.mean.size(), reading.deviation.size(), std::size_t{reading.is_colour ? 3u : 1u}});
  const auto spread = [&](const std::vector<double>& values, double otherwise) {
    if (values.size() == count) return values;
    return std::vector<double>(count, values.empty() ? otherwise : values.front());
  };
  config["image_mean"] = spread(reading.mean, 0);
  config["image_std"] = spread(reading.deviation, 1);
  return config;
}

data::ImageReading read_images_of(const fs::path& model, const models::ModelFamily& family) {
  const fs::path file = directory_of(model) / kPreprocessorName;
  std::error_code error;
  if (family.reads == models::Reads::Tokens || !fs::is_regular_file(file, error)) return {};
  const json config = read_json(file);
  return with_place(file.string(), [&] { return read_preprocessor_config(config); });
}

void write_images(const fs::path& directory, const data::ImageReading& reading,
                  const fs::path& from) {
  if (reading == data::ImageReading()) return;
  const fs::path file = directory_of(from) / kPreprocessorName;
  std::error_code error;
  json config = write_preprocessor_config(reading);
  if (!from.empty() && fs::is_regular_file(file, error))
    if (const json found = read_json(file); read_preprocessor_config(found) == reading)
      config = found;
  write_atomically(directory / kPreprocessorName, config.dump(2) + "\n");
}

}  // namespace lathe::io
