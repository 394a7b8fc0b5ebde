// Formats against roundings that PyTorch made, or that MASE defines: tests/golden/make_golden.py
// wrote them down.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lathe/core/json_reader.h"
#include "lathe/core/number_format.h"
#include "lathe/numerics/testing/matrix.h"

namespace lathe::numerics {
namespace {

TEST(SmallGolden, FormatsRoundAsPyTorchAndMaseDo) {
  const std::filesystem::path path =
      std::filesystem::path(LATHE_SOURCE_DIR) / "tests" / "golden" / "quantizers.json";
  std::ifstream stream(path, std::ios::binary);
  const nlohmann::json golden =
      parse_json(std::string{std::istreambuf_iterator<char>(stream), {}}, path.string());
  const Matrix matrix{golden.at("shape")[0], golden.at("shape")[1],
                      golden.at("x").get<std::vector<float>>()};
  ASSERT_EQ(golden.at("y").size(), 13u);
  for (const auto& [text, values] : golden.at("y").items()) {
    const auto expected = values.get<std::vector<float>>();
    const std::vector<float> y = quantized(*parse_format(text), matrix, best_isa());
    ASSERT_EQ(y.size(), expected.size()) << text;
    for (std::size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y[i], expected[i]) << text << " of " << matrix.values[i];
  }
}

}  // namespace
}  // namespace lathe::numerics
