#include "lathe/experiment/predict_images.h"

#include <algorithm>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/data/image_file.h"
#include "lathe/data/list_images.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kImagesAtOnce = 16;

}  // namespace

std::vector<fs::path> image_files(const fs::path& place) {
  std::error_code error;
  if (!fs::is_directory(place, error)) return {place};
  std::vector<fs::path> files = data::list_images(place);
  if (files.empty()) fail("{}: holds no images: looked for .png, .jpg and .jpeg", place.string());
  return files;
}

ImagePredictor::ImagePredictor(const io::Model& model, const engine::ExecutionOptions& execution)
    : answers_(answer_kind(model)), model_(model), classifier_(model, {.execution = execution}) {}

std::vector<Prediction> ImagePredictor::predict(std::span<const fs::path> files) {
  std::vector<Prediction> result;
  data::Dataset group;
  std::size_t first = 0;  // of the files in the group
  const auto answer = [&] {
    const auto source = with_place(files[first].string(), [&] {
      return train::make_evaluation_source(model_, group, {}, nullptr);
    });
    std::vector<std::int64_t> rows(group.examples.size());
    std::iota(rows.begin(), rows.end(), 0);
    const Tensor logits = classifier_.logits(source->evaluation_batch(rows).feed);
    const std::size_t width = static_cast<std::size_t>(logits.num_elements()) / rows.size();
    for (std::size_t row = 0; row < rows.size(); ++row)
      result.push_back(
          read_logits(logits.data<float>().subspan(row * width, width), answers_.labels));
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    data::Image image = data::read_image(files[i]);
    image = with_place(files[i].string(),
                       [&] { return data::prepare(std::move(image), model_.images); });
    const std::vector<std::int64_t> shape = {image.channels, image.height, image.width};
    if (i > first && (shape != group.arrays->shape || group.examples.size() == kImagesAtOnce)) {
      answer();
      group = {};
      first = i;
    }
    if (i == first) group.arrays = data::Arrays{shape, {}};
    group.examples.push_back({.text = {}, .label = 0});  // not read: predictions have none yet
    data::append_values(group.arrays->values, image, model_.images);
  }
  if (!files.empty()) answer();
  return result;
}

void predict_images(ImagePredictor& predictor, std::span<const fs::path> files,
                    const AnswerOptions& options,
                    const std::function<void(const std::string&)>& write,
                    const ShouldStop& should_stop) {
  while (!files.empty()) {
    if (should_stop && should_stop()) throw Interrupted();
    const auto some = files.first(std::min(kImagesAtOnce, files.size()));
    const std::vector<Prediction> predictions = predictor.predict(some);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!options.is_json) {
        write(some[i].string() + "\t" + to_line(predictions[i], predictor.answers(), options));
        continue;
      }
      nlohmann::ordered_json line{{"file", some[i].string()}};
      line.update(to_json(predictions[i], predictor.answers(), options));
      write(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    }
    files = files.subspan(some.size());
  }
}

}  // namespace lathe::experiment
