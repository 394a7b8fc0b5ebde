#include "lathe/engine/cpu/code_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "lathe/engine/cpu/code_weight.h"
#include "lathe/engine/cpu/encode_args.h"
#include "lathe/engine/cpu/product_partition.h"
#include "lathe/numerics/code_layout.h"
#include "lathe/ops/code_products.h"
#include "lathe/ops/example.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::engine {
namespace {

// Numbers of all sizes, the same for the same seed.
std::vector<float> random_floats(std::int64_t count, std::uint32_t seed) {
  std::vector<float> result(static_cast<std::size_t>(count));
  std::uint32_t state = seed * 2654435761u + 12345;
  for (float& value : result) {
    state = state * 1664525u + 1013904223u;
    const float place = static_cast<float>(state >> 8) * 0x1p-24f * 2 - 1;
    value = place * place * place * 3;
  }
  return result;
}

class EveryCode : public testing::TestWithParam<const CodeKernels*> {
 protected:
  const CodeKernels& table() const { return *GetParam(); }
};

constexpr float kGivenScale = 0.0193f, kGivenZero = 117;

// By the op's definition.
std::vector<Tensor> encode_by_reference(const std::string& text, const Tensor& x) {
  const std::shared_ptr<const NumberFormat> format = parse_format(text);
  std::string operands = fmt::format("f32[{},{}]", x.dim(0), x.dim(1));
  std::vector<Tensor> inputs = {x};
  if (format->facts().scale_source == ScaleSource::Given) {
    operands += ", f32[]";
    inputs.push_back(Tensor::from<float>({}, {kGivenScale}));
    if (format->facts().has_zero_point) {
      operands += ", f32[]";
      inputs.push_back(Tensor::from<float>({}, {kGivenZero}));
    }
  }
  return ops::evaluate(fmt::format("encode({}) {{format=\"{}\"}}", operands, text), inputs);
}

EncodeArgs complete(EncodeArgs args, const FormatFacts& facts) {
  if (facts.scale_source == ScaleSource::Given) {
    args.scale = static_cast<float>(ops::effective_scale(facts, kGivenScale));
    args.zero = facts.has_zero_point ? kGivenZero : 0;
  }
  return args;
}

void expect_same_codes(const CodeKernels& table, const std::string& text, const Tensor& x) {
  const std::vector<Tensor> expected = encode_by_reference(text, x);
  const std::shared_ptr<const NumberFormat> format = parse_format(text);
  EncodeArgs args = complete(*encode_args(*format, x.dim(1)), format->facts());
  std::vector<std::int8_t> numbers(static_cast<std::size_t>(expected[0].num_elements()));
  std::vector<float> scales(static_cast<std::size_t>(expected[1].num_elements()));
  std::vector<std::int32_t> zeros(scales.size());
  args.rows = x.dim(0);
  args.x = x.data<float>().data();
  args.numbers = numbers.data();
  args.scales = scales.data();
  args.zeros = zeros.data();
  table.encode(args);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    ASSERT_EQ(numbers[i], expected[0].data<std::int8_t>()[i]) << text << ", element " << i;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const float scale = expected[1].data<float>()[i];
    EXPECT_EQ(std::isnan(scales[i]), std::isnan(scale)) << text << ", scale " << i;
    if (!std::isnan(scale)) {
      EXPECT_EQ(scales[i], scale) << text << ", scale " << i;
    }
    EXPECT_EQ(zeros[i], expected[2].data<std::int32_t>()[i]) << text << ", zero " << i;
  }
}

const std::vector<std::string>& activation_formats() {
  static const std::vector<std::string> formats = {
      "int:8",         "int:8,dynamic", "int:8,asymmetric", "int:8,asymmetric,dynamic",
      "int:4,dynamic", "fixed:8,5",     "fixed:8,auto",     "fixed:8,7,unsigned",
      "mxint:8",       "mxint:4",       "mxint:8,block=16", "int:8,group=32,dynamic"};
  return formats;
}

TEST_P(EveryCode, RoundsAsTheFormatDoes) {
  for (const std::string& text : activation_formats())
    for (const std::int64_t columns : {1, 16, 40, 64, 300, 771})
      expect_same_codes(table(), text,
                        Tensor::from<float>({5, columns}, random_floats(5 * columns, 7)));
}

TEST_P(EveryCode, RoundsTiesToEven) {
  // Quotients by the given scale and by powers of two that lie on a tie, or a bit beside it.
  std::vector<float> values;
  for (int i = -300; i < 300; ++i)
    for (const float scale : {kGivenScale, 0x1p-5f, 0x1p-6f}) {
      const float tie = (static_cast<float>(i) + 0.5f) * scale;
      values.insert(values.end(), {tie, std::nextafter(tie, 1e9f), std::nextafter(tie, -1e9f)});
    }
  const auto columns = static_cast<std::int64_t>(values.size());
  for (const std::string& text : activation_formats())
    expect_same_codes(table(), text, Tensor::from<float>({1, columns}, values));
}

TEST_P(EveryCode, RoundsWhatIsNotFiniteAsTheFormatDoes) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float odd : {infinity, -infinity, nan, 0.0f, -0.0f, 1e-42f, 3e38f, -3e38f})
    for (const std::size_t place : {0, 13, 70}) {
      std::vector<float> values = random_floats(3 * 71, 3);
      values[71 + place] = odd;
      std::fill(values.begin() + 142, values.end(), odd == odd ? odd : 0.0f);
      for (const std::string& text : activation_formats())
        expect_same_codes(table(), text, Tensor::from<float>({3, 71}, values));
    }
}

// A product's operands, and its result by definition.
class Product {
 public:
  Product(const std::string& x_format, const std::string& format, std::int64_t rows, std::int64_t n,
          std::int64_t k, bool is_at_ends = false)
      : rows_(rows),
        n_(n),
        k_(k),
        x_format_(parse_format(x_format)),
        format_(parse_format(format)) {
    std::vector<float> x = random_floats(rows * k, 1), weights = random_floats(n * k, 2);
    if (is_at_ends) {
      std::fill(x.begin(), x.end(), 3.0f);
      std::fill(weights.begin(), weights.end(), 3.0f);
    }
    encoded_ = encode_by_reference(x_format, Tensor::from<float>({rows, k}, x));
    const FormatFacts& facts = format_->facts();
    std::vector<float> scales(static_cast<std::size_t>(format_->num_given_scales(n, k)));
    for (std::size_t i = 0; i < scales.size(); ++i)
      scales[i] = 0.01f + 0.001f * static_cast<float>(i % 7);
    const std::vector<float> zeros(scales.size(), 6.0f);
    const EncodedMatrix packed = format_->encode({.rows = n,
                                                  .columns = k,
                                                  .x = weights.data(),
                                                  .scales = scales.data(),
                                                  .zeros = zeros.data()});
    weight_[0] = Tensor::from<std::uint8_t>({n, format_->code_bytes(k)}, packed.codes);
    std::string operands = fmt::format("i8[{0},{1}], f32[{0},{2}], i32[{0},{2}], u8[{3},{4}]", rows,
                                       k, encoded_[1].dim(1), n, format_->code_bytes(k));
    std::vector<Tensor> inputs = {encoded_[0], encoded_[1], encoded_[2], weight_[0]};
    if (!packed.scales.empty()) {
      const std::int64_t lines = facts.granularity == Granularity::Tensor ? std::int64_t{1} : n;
      weight_[1] = Tensor::from<std::uint8_t>({lines, format_->scale_bytes(k)}, packed.scales);
      has_[1] = true;
      operands += fmt::format(", u8[{},{}]", lines, format_->scale_bytes(k));
      inputs.push_back(weight_[1]);
    } else {
      operands += ", none";
    }
    const auto add_floats = [&](std::size_t index, bool is_there,
                                const std::vector<float>& values) {
      if (!is_there) {
        operands += ", none";
        return;
      }
      std::vector<std::int64_t> dims;
      if (facts.granularity != Granularity::Tensor) dims.push_back(n);
      if (facts.granularity == Granularity::Block)
        dims.push_back(static_cast<std::int64_t>(values.size()) / n);
      weight_[index] = Tensor::from<float>(dims, values);
      has_[index] = true;
      std::string shape;
      for (const std::int64_t dim : dims) shape += (shape.empty() ? "" : ",") + std::to_string(dim);
      operands += fmt::format(", f32[{}]", shape);
      inputs.push_back(weight_[index]);
    };
    const bool is_given = facts.scale_source == ScaleSource::Given;
    add_floats(2, is_given, scales);
    add_floats(3, is_given && facts.has_zero_point, zeros);
    bias_ = random_floats(n, 4);
    operands += fmt::format(", f32[{}]", n);
    inputs.push_back(Tensor::from<float>({n}, bias_));
    expected_ =
        ops::evaluate(fmt::format("code_linear({}) {{x_format=\"{}\", format=\"{}\", columns={}}}",
                                  operands, x_format, format, k),
                      inputs)[0];
  }

  // Computes it in blocks of rows and columns and compares the bits.
  void expect_same(const CodeKernels& table, std::int64_t row_blocks, std::int64_t column_blocks) {
    const ops::CodeBlocks blocks = *ops::code_blocks(x_format_->facts(), format_->facts(), k_);
    const CodeCut cut{
        k_, blocks.blocks, blocks.width, blocks.x_has_blocks, blocks.weight_has_blocks, false};
    const bool has_zeros = numerics::code_layout(*x_format_) == numerics::CodeLayout::Unsigned;
    const auto operand = [&](std::size_t i) { return has_[i] ? &weight_[i] : nullptr; };
    CodeWeight weight;
    weight.pack(table,
                ops::read_weight(*format_, k_, weight_[0], operand(1), operand(2), operand(3)), cut,
                has_zeros);
    std::vector<float> y(static_cast<std::size_t>(rows_ * n_), -1.0f);
    const Partition partition({rows_, n_, k_}, table.grain(), row_blocks, column_blocks);
    const std::int64_t scales = encoded_[1].dim(1);
    for (std::int64_t i = 0; i < partition.count(); ++i) {
      const Block block = partition.block(i);
      const AlignedBuffer scratch(table.scratch_bytes(block.rows, weight.cut()));
      std::memset(scratch.data(), 0xff, static_cast<std::size_t>(scratch.size()));
      CodeArgs args{};
      args.rows = block.rows;
      args.n = block.columns;
      args.x = encoded_[0].data<std::int8_t>().data() + block.row * k_;
      args.x_stride = k_;
      args.x_scales = encoded_[1].data<float>().data() + block.row * scales;
      if (has_zeros) args.x_zeros = encoded_[2].data<std::int32_t>().data() + block.row * scales;
      args.bias = bias_.data() + block.column;
      args.activation = Unary::None;
      args.y = y.data() + block.row * n_ + block.column;
      args.y_stride = n_;
      args.scratch = scratch.data();
      weight.set_operands(args, block.column);
      table.multiply(args);
    }
    for (std::size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(y[i]),
                std::bit_cast<std::uint32_t>(expected_.data<float>()[i]))
          << x_format_->facts().text << " by " << format_->facts().text << ", " << rows_ << " x "
          << n_ << " x " << k_ << ", element " << i << ": " << y[i] << " and "
          << expected_.data<float>()[i];
  }

 private:
  std::int64_t rows_, n_, k_;
  std::shared_ptr<const NumberFormat> x_format_, format_;
  std::vector<Tensor> encoded_;
  std::array<Tensor, 4> weight_;
  std::array<bool, 4> has_ = {true, false, false, false};
  std::vector<float> bias_;
  Tensor expected_;
};

TEST_P(EveryCode, MultipliesToTheBitsOfTheDefinition) {
  const std::pair<const char*, const char*> formats[] = {
      {"int:8,dynamic", "int:8,channel"},
      {"int:8", "int:8"},
      {"int:8,asymmetric,dynamic", "int:8,channel"},
      {"int:8,asymmetric", "int:4,group=32"},
      {"int:8,dynamic", "int:4,group=32"},
      {"int:8,dynamic", "int:4,group=32,asymmetric"},
      {"mxint:8", "mxint:8"},
      {"mxint:8", "int:8,channel"},
      {"int:8,group=32,dynamic", "ternary"},
      {"int:8,dynamic", "binary:scaled"},
      {"int:8,dynamic", "ternary:tensor"},
      {"fixed:8,5", "fixed:8,6"}};
  for (const auto& [x_format, format] : formats)
    for (const auto& [rows, n, k] :
         {std::array<std::int64_t, 3>{1, 7, 40}, {3, 33, 128}, {19, 64, 96}, {40, 70, 72}})
      Product(x_format, format, rows, n, k).expect_same(table(), 1, 1);
}

TEST_P(EveryCode, MultipliesManyRowsOfBlocks) {
  // An odd number of blocks and an even one, and rows that are left over.
  const std::pair<const char*, const char*> formats[] = {{"mxint:8", "mxint:8"},
                                                         {"mxint:8", "int:8,channel"},
                                                         {"int:8,dynamic", "int:8,group=64"},
                                                         {"int:8,group=32,dynamic", "mxint:8"},
                                                         {"int:8,asymmetric", "int:8,group=32"}};
  for (const auto& [x_format, format] : formats)
    for (const auto& [rows, n, k] :
         {std::array<std::int64_t, 3>{67, 70, 160}, {32, 33, 192}, {33, 32, 64}})
      Product(x_format, format, rows, n, k).expect_same(table(), 1, 1);
  Product("mxint:8", "mxint:8", 130, 200, 192).expect_same(table(), 2, 3);
}

TEST_P(EveryCode, MultipliesDepthsThatAreNoWholeSteps) {
  for (const std::int64_t k : {1, 2, 3, 5, 63, 65, 130})
    for (const char* const x_format : {"int:8,dynamic", "int:8,asymmetric,dynamic"})
      Product(x_format, "int:8,channel", 18, 34, k).expect_same(table(), 1, 1);
  Product("mxint:8", "mxint:8", 9, 34, 67).expect_same(table(), 1, 1);
}

TEST_P(EveryCode, HasTheSameBitsInAnyBlocks) {
  Product channel("int:8,asymmetric,dynamic", "int:8,channel", 45, 200, 128);
  channel.expect_same(table(), 3, 2);
  channel.expect_same(table(), 2, 1);
  Product blocks("mxint:8", "mxint:8", 45, 200, 128);
  blocks.expect_same(table(), 4, 3);
}

TEST_P(EveryCode, SumsTheLargestNumbersExactly) {
  // All numbers at their ends, as deep as 32 bits allow.
  Product("int:8,asymmetric,dynamic", "int:8,channel", 2, 3, ops::kDeepestCodes, true)
      .expect_same(table(), 1, 1);
}

INSTANTIATE_TEST_SUITE_P(Ways, EveryCode, testing::ValuesIn(every_code_kernels()),
                         [](const auto& table) { return std::string(table.param->name); });

}  // namespace
}  // namespace lathe::engine
