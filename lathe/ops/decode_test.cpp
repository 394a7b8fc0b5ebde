#include <gtest/gtest.h>

#include "lathe/core/number_format.h"
#include "lathe/ops/quantized_operands.h"
#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

std::vector<std::string> format_examples() {
  std::vector<std::string> all;
  for (const std::string& name : FormatRegistry::instance().names())
    for (const std::string& example : FormatRegistry::instance().find(name)->examples)
      all.push_back(example);
  return all;
}

class EveryFormat : public testing::TestWithParam<std::string> {};

TEST_P(EveryFormat, DecodesItsCodesToWhatQuantizeGives) {
  const std::shared_ptr<const NumberFormat> format = parse_format(GetParam());
  const FormatFacts& facts = format->facts();
  // Five rows of 40: blocks and tiles that do not come out even.
  const Example source = parse_example("relu(f32[5,40])");
  const Tensor x = random_inputs(source, 3, {.low = -20, .high = 30})[0];
  std::string operands;
  std::vector<Tensor> given;
  if (facts.scale_source == ScaleSource::Given) {
    const Type type{DType::F32, given_scale_shape(*format, {DType::F32, {5, 40}})};
    Tensor scale(DType::F32, type.dims({})), zero(DType::F32, type.dims({}));
    for (std::int64_t i = 0; i < scale.num_elements(); ++i) {
      scale.mutable_data<float>()[static_cast<std::size_t>(i)] =
          0.3f + 0.1f * static_cast<float>(i);
      zero.mutable_data<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i % 3);
    }
    operands = ", " + to_text(type);
    given.push_back(scale);
    if (facts.has_zero_point) {
      operands += ", " + to_text(type);
      given.push_back(zero);
    }
  }
  QuantizeArgs args;
  args.rows = 5;
  args.columns = 40;
  args.x = x.data<float>().data();
  if (!given.empty()) args.scales = given[0].data<float>().data();
  if (given.size() > 1) args.zeros = given[1].data<float>().data();
  const EncodedMatrix encoded = format->encode(args);
  std::vector<Tensor> inputs{Tensor::from<std::uint8_t>(
      {5, format->code_bytes(40)}, std::span<const std::uint8_t>(encoded.codes))};
  std::string local = "none";
  if (format->scale_bytes(40) > 0) {
    const Type codes{DType::U8, {5, Size(format->code_bytes(40))}};
    const Type type{DType::U8, local_scale_shape(*format, codes, 40)};
    local = to_text(type);
    inputs.push_back(
        Tensor::from<std::uint8_t>(type.dims({}), std::span<const std::uint8_t>(encoded.scales)));
  }
  inputs.insert(inputs.end(), given.begin(), given.end());
  const std::string attributes = fmt::format("format=\"{}\"", GetParam());
  const Tensor decoded = evaluate(fmt::format("decode(u8[5,{}], {}{}) {{{}, columns=40}}",
                                              format->code_bytes(40), local, operands, attributes),
                                  inputs)[0];

  std::vector<Tensor> floats{x};
  floats.insert(floats.end(), given.begin(), given.end());
  const Tensor quantized =
      evaluate(fmt::format("quantize(f32[5,40]{}) {{{}}}", operands, attributes), floats)[0];
  EXPECT_TRUE(identical(decoded, quantized));
  // The fast way to the same bits.
  Tensor fast(DType::F32, {5, 40});
  args.y = fast.mutable_data<float>().data();
  format->quantize(args);
  EXPECT_TRUE(identical(decoded, fast));
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryFormat, testing::ValuesIn(format_examples()),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

TEST(Decode, ReadsCodesAsLittleEndianBitStreams) {
  // 1, -2 in the first byte's halves, 3 and padding in the second's.
  EXPECT_EQ(result_of(R"(decode(u8[1,2], none, f32[1]) {format="int:4,channel", columns=3})",
                      {Tensor::from<std::uint8_t>({1, 2}, {0xe1, 0x03}), f32({1}, {0.5f})}),
            (std::vector<float>{0.5f, -1, 1.5f}));
}

TEST(Decode, RefusesBytesThatDoNotFit) {
  EXPECT_EQ(refusal_of(R"(decode(u8[3,4], none, f32[3]) {format="int:4,channel", columns=9})"),
            "node \"y\": decode: codes is u8[3,4], but rows of 9 numbers of int:4,channel take "
            "u8[..,5]");
  EXPECT_EQ(refusal_of(R"(decode(u8[3,64]) {format="mxint:8", columns=64})"),
            "node \"y\": decode: mxint:8 needs its local scales");
  EXPECT_EQ(refusal_of(R"(decode(u8[3,64], u8[2,2]) {format="mxint:8", columns=64})"),
            "node \"y\": decode: local is u8[2,2], but codes u8[3,64] of mxint:8 come "
            "with u8[3,2]");
  EXPECT_EQ(refusal_of(R"(decode(u8[6,32], u8[6,2]) {format="bfp:8,block=4x16", columns=32})"),
            "node \"y\": decode: local is u8[6,2], but codes u8[6,32] of bfp:8,block=4x16 come "
            "with u8[2,2]");
  EXPECT_EQ(refusal_of(R"(decode(u8[3,8], u8[3,1]) {format="fixed:8,4", columns=8})"),
            "node \"y\": decode: fixed:8,4 has no local scales");
  EXPECT_EQ(refusal_of(R"(decode(u8[3,4]) {format="int:4,channel", columns=8})"),
            "node \"y\": decode: int:4,channel needs a scale");
  EXPECT_EQ(refusal_of(R"(decode(f32[3,8]) {format="fixed:8,4", columns=8})"),
            "node \"y\": decode: codes is f32[3,8], but rows of 8 numbers of fixed:8,4 take "
            "u8[..,8]");
  EXPECT_EQ(refusal_of(R"(decode(u8[3,8]) {format="fixed:8,4", columns=-1})"),
            "node \"y\": decode: columns=-1 must be positive");
}

}  // namespace
}  // namespace lathe::ops
