// Twins against outputs of MASE itself, which are not part of the project.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lathe/core/json_reader.h"
#include "lathe/core/number_format.h"
#include "lathe/numerics/testing/matrix.h"

namespace lathe::numerics {
namespace {

std::string format_of(const nlohmann::json& test) {
  const std::string quantizer = test.at("quantizer");
  const nlohmann::json& config = test.at("config");
  const auto number = [&](const char* key) { return config.at(key).get<int>(); };
  const auto tile = [&] {
    return fmt::format("block={}x{}", config.at("block_size")[0].get<int>(),
                       config.at("block_size")[1].get<int>());
  };
  const std::string name = "mase." + quantizer;
  if (quantizer == "binary") return name;
  if (quantizer == "integer" || quantizer == "integer_floor")
    return fmt::format("{}:{},{}{}", name, number("width"), number("frac_width"),
                       config.value("is_signed", true) ? "" : ",unsigned");
  if (quantizer == "log")
    return fmt::format("{}:{},bias={}", name, number("width"), number("exponent_bias"));
  if (quantizer == "block_log")
    return fmt::format("{}:{},bias_width={},{}", name, number("width"),
                       number("exponent_bias_width"), tile());
  if (quantizer == "block_minifloat")
    return fmt::format("{}:{},{},bias_width={},{}", name, number("width"), number("exponent_width"),
                       number("exponent_bias_width"), tile());
  const std::string text = fmt::format("{}:{},{},bias={}", name, number("width"),
                                       number("exponent_width"), number("exponent_bias"));
  return quantizer == "block_fp" ? text + "," + tile() : text;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(MaseTwins, GiveTheBitsThatMaseGives) {
  const std::filesystem::path path =
      std::filesystem::path(LATHE_SHARED_DIR) / "golden" / "mase_quantizers.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const nlohmann::json golden = parse_json(read(path), path.string());
  int num_cases = 0;
  for (const nlohmann::json& test : golden.at("cases")) {
    const std::string text = format_of(test);
    const auto format = parse_format(text);
    const auto shape = test.at("shape").get<std::vector<std::int64_t>>();
    Matrix matrix{shape.size() == 2 ? shape[0] : 1, shape.back(),
                  test.at("x").get<std::vector<float>>()};
    const auto expected = test.at("y").get<std::vector<float>>();
    const std::vector<float> y = quantized(*format, matrix, best_isa());
    ++num_cases;
    int shown = 0;
    for (std::size_t i = 0; i < y.size() && shown < 5; ++i)
      if (!is_same(y[i], expected[i])) {
        ADD_FAILURE() << text << " of " << matrix.values[i] << ": " << y[i] << " instead of "
                      << expected[i];
        ++shown;
      }
  }
  EXPECT_EQ(num_cases, 16);
}

}  // namespace
}  // namespace lathe::numerics
