// Every number format under masks of every kind is stored and comes back to the bit.

#include <gtest/gtest.h>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/number_format.h"
#include "lathe/io/model.h"
#include "lathe/io/model_size.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::compress {
namespace {

struct Pattern {
  const char* name;
  bool (*is_kept)(std::int64_t row, std::int64_t column);
};
const Pattern kPatterns[] = {
    {"element", [](std::int64_t r, std::int64_t c) { return (r * 37 + c * 11) % 17 < 5; }},
    {"2:4", [](std::int64_t r, std::int64_t c) { return (c + r) % 4 < 2; }},
    {"4x4", [](std::int64_t r, std::int64_t c) { return (r / 4 * 5 + c / 4 * 3) % 7 < 2; }},
    {"row", [](std::int64_t r, std::int64_t) { return r % 3 == 0; }},
    {"column", [](std::int64_t, std::int64_t c) { return c % 5 == 1; }},
};

std::vector<std::string> every_format() {
  std::vector<std::string> all;
  for (const auto& [name, family] : FormatRegistry::instance().all())
    all.insert(all.end(), family.examples.begin(), family.examples.end());
  return all;
}

class EveryStoredFormat : public testing::TestWithParam<std::string> {};

TEST_P(EveryStoredFormat, ComesBackUnderEveryMask) {
  const io::ScratchDirectory scratch;
  for (const Pattern& pattern : kPatterns) {
    io::Model model = io::load_model("mlp:64,48,10");
    Tensor mask(DType::F32, {48, 64});
    for (std::int64_t i = 0; i < mask.num_elements(); ++i)
      mask.mutable_data<float>()[static_cast<std::size_t>(i)] =
          pattern.is_kept(i / 64, i % 64) ? 1 : 0;
    insert_masks(model.graph, model.state, {{"layers.0.weight", mask}});
    insert_quantizers(model.graph, model.state,
                      {{.by = QuantizationRule::By::Regex,
                        .match = "layers",
                        .formats = {{TensorRole::Weights, GetParam()}}}});
    set_parameter_scales(model.graph, model.state, {});
    pack_model(model, false);
    std::int64_t plain = 0;
    for (const io::Storage storage :
         {io::Storage::Plain, io::Storage::Sparse, io::Storage::Compact}) {
      SCOPED_TRACE(fmt::format("{} {}", pattern.name, name(storage)));
      const std::string folder = fmt::format("{}-{}", pattern.name, name(storage));
      io::write_checkpoint(scratch / folder, model, storage);
      const io::Model loaded = io::load_model((scratch / folder).string());
      EXPECT_EQ(print(loaded.graph), print(model.graph));
      ASSERT_EQ(loaded.state.size(), model.state.size());
      for (const auto& [tensor, value] : model.state)
        EXPECT_TRUE(identical(loaded.state.at(tensor), value)) << tensor;
      const std::int64_t bytes = io::model_size(scratch / folder).files.at("model.safetensors");
      if (storage == io::Storage::Plain) plain = bytes;
      // The mask alone saves 31 of its 32 bits.
      EXPECT_LE(bytes, plain - (storage == io::Storage::Plain ? 0 : 48 * 64 * 31 / 8 - 700));
    }
  }
}

std::string format_name(const testing::TestParamInfo<std::string>& one) {
  std::string name = one.param;
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  return fmt::format("{}_{}", one.index, name);
}
INSTANTIATE_TEST_SUITE_P(, EveryStoredFormat, testing::ValuesIn(every_format()), format_name);

}  // namespace
}  // namespace lathe::compress
