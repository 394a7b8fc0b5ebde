// Real ONNX files with reference outputs, from the shared material where it is there: a digit
// classifier by CNTK, one by PyTorch, a face detector with chains of shapes.

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/data/dataset.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/io/onnx/onnx_model.h"
#include "lathe/train/run_model.h"

namespace lathe::train {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(LATHE_SHARED_DIR) / "data/onnx-small";
const fs::path kDigits = fs::path(LATHE_SHARED_DIR) / "data/mnist-t10k";

double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.dims(), b.dims());
  double largest = 0;
  for (std::int64_t i = 0; i < a.num_elements(); ++i)
    largest = std::max(largest, std::fabs(a.at(i) - b.at(i)));
  return largest;
}

// The outputs of the file's own test data, and how far ours are off.
void expect_outputs(const fs::path& folder, const std::string& input,
                    const std::vector<std::string>& outputs, double tolerance) {
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const io::Model model = io::load_model((folder / "model.onnx").string());
  const fs::path data = folder / "test_data_set_0";
  const Feed found =
      run_model(model, {{input, io::onnx::read_onnx_tensor(data / "input_0.pb")}}, {});
  for (std::size_t i = 0; i < outputs.size(); ++i)
    EXPECT_LE(largest_difference(found.at(outputs[i]),
                                 io::onnx::read_onnx_tensor(data / fmt::format("output_{}.pb", i))),
              tolerance)
        << outputs[i];
}

// Values reach 6575, and float32 has 24 bits: sums of a few hundred terms differ in the last ones.
TEST(OnnxModels, DigitsOfCntkAgree) {
  expect_outputs(kModels / "mnist", "Input3", {"Plus214_Output_0"}, 0.005);
}

TEST(OnnxModels, FaceDetectorAgrees) {
  expect_outputs(kModels / "version-RFB-640", "input", {"scores", "boxes"}, 1e-5);
}

double share_right(const std::string& name, const std::string& input, float scale, float shift) {
  const data::Dataset digits =
      data::load_dataset(kDigits.string(), "test", {.reads = data::Reads::Numbers});
  const std::vector<std::int32_t> labels = digits.labels();
  const auto count = static_cast<std::int64_t>(labels.size());
  Tensor images(DType::F32, {count, 1, 28, 28});
  const std::span<float> values = images.mutable_data<float>();
  // Pixels are read from 0 to 1.
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = digits.arrays->values[i] * scale - shift;
  // Exported for one row, and run on all at once.
  const io::Model model = io::load_model((kModels / name).string());
  const Tensor logits = run_model(model, {{input, images}}, {}).at("logits");
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t best = 0;
    for (std::int64_t j = 1; j < 10; ++j)
      if (logits.at(i * 10 + j) > logits.at(i * 10 + best)) best = j;
    right += best == labels[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(count);
}

TEST(OnnxModels, DigitsAreReadAsWellAsStated) {
  if (!fs::exists(kModels) || !fs::exists(kDigits))
    GTEST_SKIP() << "the shared models or digits are not there";
  EXPECT_DOUBLE_EQ(share_right("mnist/model.onnx", "Input3", 255.0F, 0.0F), 0.9891);
  EXPECT_DOUBLE_EQ(share_right("cnn_mnist_pytorch.onnx", "0", 1.0F / 0.3081F, 0.1307F / 0.3081F),
                   0.9907);
}

// What other files hold is read, and one with ops of another domain is refused by name.
TEST(OnnxModels, EveryFloatFileIsRead) {
  if (!fs::exists(kModels)) GTEST_SKIP() << "the shared models are not there";
  for (const char* const name : {"HAR-CNN", "KWS-DNN_S", "squeezenet_cifar10",
                                 "qonnx-espcn/nn_resize_float", "qonnx-espcn/subpixel_float"})
    EXPECT_NO_THROW(io::load_model((kModels / name).string() + ".onnx")) << name;
}

}  // namespace
}  // namespace lathe::train
