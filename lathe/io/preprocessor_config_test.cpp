#include "lathe/io/preprocessor_config.h"

#include <gtest/gtest.h>

#include "lathe/io/json_file.h"
#include "lathe/io/model.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io {
namespace {

using nlohmann::json;

std::string read(const char* text) {
  return data::to_text(read_preprocessor_config(json::parse(text)));
}

std::string refused(const char* text) {
  return refusal("", [&] { read_preprocessor_config(json::parse(text)); });
}

TEST(PreprocessorConfig, SaysWhatViTsDo) {
  EXPECT_EQ(read(R"({"do_normalize": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5],
                     "image_std": [0.5, 0.5, 0.5], "size": 224, "resample": 2,
                     "image_processor_type": "ViTImageProcessor"})"),
            "resize=224x224,mean=0.5/0.5/0.5,deviation=0.5/0.5/0.5");
  EXPECT_EQ(read(R"({"do_normalize": false, "do_resize": true, "do_rescale": false,
                     "size": {"height": 32, "width": 48}, "resample": 0})"),
            "resize=32x48,resample=nearest,white=255");
}

// The published ResNets name ConvNext's preparation, which resizes to more than it keeps.
TEST(PreprocessorConfig, SaysWhatResNetsDo) {
  EXPECT_EQ(read(R"({"crop_pct": 0.875, "do_normalize": true, "do_resize": true,
                     "feature_extractor_type": "ConvNextFeatureExtractor",
                     "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
                     "resample": 3, "size": 224})"),
            "shortest=256,resample=bicubic,crop=224x224,mean=0.485/0.456/0.406,"
            "deviation=0.229/0.224/0.225");
  EXPECT_EQ(read(R"({"image_processor_type": "ConvNextImageProcessor", "do_normalize": false,
                     "size": {"shortest_edge": 384}})"),
            "resize=384x384");
}

TEST(PreprocessorConfig, SaysWhatCLIPDoes) {
  EXPECT_EQ(read(R"({"do_resize": true, "size": {"shortest_edge": 256}, "do_center_crop": true,
                     "crop_size": {"height": 224, "width": 200}, "do_convert_rgb": true,
                     "rescale_factor": 0.00392156862745098, "do_normalize": false})"),
            "shortest=256,crop=224x200,colour");
}

TEST(PreprocessorConfig, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refused(R"({"do_pad": true})"), "do_pad is true, which is not known here");
  EXPECT_EQ(refused(R"({"image_processor_type": "EfficientNetImageProcessor",
                        "rescale_factor": 0.00784313725490196, "rescale_offset": true})"),
            "rescale_offset is true, which is not known here");
  EXPECT_EQ(read(R"({"rescale_offset": false, "offset": false})"), "");
  EXPECT_EQ(refused(R"({"do_normalize": true, "image_mean": [0.5]})"),
            "do_normalize is true, but image_std is missing");
  EXPECT_EQ(refused(R"({"size": {"longest_edge": 5}})"),
            "size is {\"longest_edge\":5}: expected height and width, or shortest_edge");
  EXPECT_EQ(refused(R"({"size": 5})"),
            "size is 5, which files without image_processor_type do not tell: expected height and "
            "width, or shortest_edge");
  EXPECT_EQ(refused(R"({"size": {"height": -1, "width": 4}})"),
            "resize: -1: expected 1 to 16384 pixels");
  EXPECT_EQ(refused(R"({"size": {"height": "a", "width": 4}})"),
            "size.height is \"a\": expected a whole number");
  EXPECT_EQ(refused(R"({"do_resize": 3})"), "do_resize is 3: expected true or false");
  EXPECT_EQ(refused("[]"), "expected an object of keys");
}

TEST(PreprocessorConfig, IsReadBackAsItWasWritten) {
  for (const char* text :
       {"resize=8x6", "shortest=9,resample=bicubic,crop=8x8,mean=0.1,deviation=0.3", "white=255",
        "colour,mean=0.1/0.2/0.3,deviation=1/1/1", "resize=4x4,resample=lanczos,white=2"}) {
    const data::ImageReading reading = data::parse_image_reading(text);
    EXPECT_EQ(data::to_text(read_preprocessor_config(write_preprocessor_config(reading))), text);
  }
}

TEST(PreprocessorConfig, GoesWithAModelAndKeepsWhatOthersWroteThere) {
  const ScratchDirectory scratch;
  Model model = load_model("cnn:1x4x4,c2k3,8");
  model.images = data::parse_image_reading("mean=0.5,deviation=0.25");
  write_checkpoint(scratch.path() / "a", model);
  EXPECT_EQ(load_model((scratch.path() / "a").string()).images, model.images);

  write_huggingface(scratch.path() / "b", load_model((scratch.path() / "a").string()));
  scratch.write("b/preprocessor_config.json",
                R"({"image_mean": [0.5], "image_std": [0.25], "crop_scheme": "ours"})");
  write_huggingface(scratch.path() / "c", load_model((scratch.path() / "b").string()));
  EXPECT_EQ(read_json(scratch.path() / "c" / kPreprocessorName).value("crop_scheme", ""), "ours");
}

}  // namespace
}  // namespace lathe::io
