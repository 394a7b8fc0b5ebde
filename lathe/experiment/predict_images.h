#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lathe/core/interrupt.h"
#include "lathe/experiment/predict.h"
#include "lathe/experiment/predict_table.h"

namespace lathe::experiment {

/// The image that `place` is, or all of them in that folder and the folders in it, by name. Fails
/// where there is none.
std::vector<std::filesystem::path> image_files(const std::filesystem::path& place);

/// Answers image files, prepared as the model's are.
class ImagePredictor {
 public:
  ImagePredictor(const io::Model& model, const engine::ExecutionOptions& execution);
  /// One for each file, in their order.
  std::vector<Prediction> predict(std::span<const std::filesystem::path> files);
  const AnswerKind& answers() const { return answers_; }

 private:
  AnswerKind answers_;
  io::Model model_;
  train::Classifier classifier_;
};

/// Answers files group by group and hands a line over for each: its path, label and probability
/// between tabs, or a JSON object with the key `file`.
void predict_images(ImagePredictor& predictor, std::span<const std::filesystem::path> files,
                    const AnswerOptions& options,
                    const std::function<void(const std::string&)>& write,
                    const ShouldStop& should_stop = {});

}  // namespace lathe::experiment
