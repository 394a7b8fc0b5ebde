#include "lathe/experiment/predict_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/testing/png_bytes.h"
#include "lathe/data/testing/temporary_directory.h"
#include "lathe/io/testing/refusal.h"

namespace lathe::experiment {
namespace {

using data::png;
using data::TemporaryDirectory;
using io::refusal;
using testing::ElementsAre;

// Two pixels and two labels: the logits are the pixels.
io::Model identity() {
  io::Model model = io::load_model("mlp:2,2");
  for (const NodeId id : model.graph.nodes_of("state")) {
    const std::string& name = model.graph.name(id);
    const bool is_weight = model.graph.types(id)[0].rank() == 2;
    model.state[name] =
        is_weight ? Tensor::from<float>({2, 2}, {1, 0, 0, 1}) : Tensor::from<float>({2}, {0, 0});
  }
  model.fresh.clear();
  model.label_names = {"left", "right"};
  return model;
}

TEST(PredictImages, AnswersEachFileByItsName) {
  const TemporaryDirectory directory;
  directory.write("in/b.png", png(2, 1, PNG_FORMAT_GRAY, {0, 255}));
  directory.write("in/a.png", png(2, 1, PNG_FORMAT_GRAY, {255, 0}));
  directory.write("in/deep/c.PNG", png(2, 1, PNG_FORMAT_GRAY, {51, 51}));
  directory.write("in/notes.txt", "no image");
  ImagePredictor predictor(identity(), {});
  const std::string folder = (directory.path() / "in").string();
  std::vector<std::string> lines;
  predict_images(predictor, image_files(folder), {},
                 [&](const std::string& line) { lines.push_back(line); });
  EXPECT_THAT(lines, ElementsAre(folder + "/a.png\tleft\t0.7311", folder + "/b.png\tright\t0.7311",
                                 folder + "/deep/c.PNG\tleft\t0.5000"));
}

TEST(PredictImages, PreparesImagesAsTheModelSays) {
  const TemporaryDirectory directory;
  io::Model model = identity();
  model.images = data::parse_image_reading("resize=1x2,resample=nearest,white=255");
  ImagePredictor predictor(model, {});
  const std::vector<std::filesystem::path> files = {
      directory.write("a.png", png(4, 2, PNG_FORMAT_GRAY, {1, 1, 1, 1, 1, 7, 1, 9})),
      directory.write("b.png", png(1, 1, PNG_FORMAT_GRAY, {3}))};
  const std::vector<Prediction> answers = predictor.predict(files);
  EXPECT_THAT(answers[0].logits, ElementsAre(7, 9));
  EXPECT_THAT(answers[1].logits, ElementsAre(3, 3));
}

TEST(PredictImages, RefusesWhatIsNoImageOrDoesNotFit) {
  const TemporaryDirectory directory;
  ImagePredictor predictor(identity(), {});
  const auto refused = [&](const std::filesystem::path& file) {
    return refusal(directory.path().string(), [&] { predictor.predict(image_files(file)); });
  };
  EXPECT_EQ(refused(directory.write("a.txt", "text")),
            "a.txt: is no image: expected .png, .jpg or .jpeg");
  EXPECT_EQ(refused(directory.write("b.png", png(3, 1, PNG_FORMAT_GRAY, {1, 2, 3}))),
            "b.png: the model reads examples of shape [2], but the data's are of shape [1,1,3]");
  EXPECT_EQ(refused(directory.path() / "nowhere"),
            "nowhere: cannot be opened: No such file or directory");
  directory.write("empty/readme", "nothing");
  EXPECT_EQ(refused(directory.path() / "empty"),
            "empty: holds no images: looked for .png, .jpg and .jpeg");
}

TEST(PredictImages, RefusesALinkThatLeadsBack) {
  const TemporaryDirectory directory;
  directory.write("in/a.png", png(2, 1, PNG_FORMAT_GRAY, {255, 0}));
  const std::filesystem::path in = directory.path() / "in";
  std::filesystem::create_directory_symlink(".", in / "loop");
  EXPECT_EQ(refusal(directory.path().string(), [&] { image_files(in); }),
            "in/loop: is a link to " + std::filesystem::canonical(in).string() +
                ", of which images are read already");
}

}  // namespace
}  // namespace lathe::experiment
