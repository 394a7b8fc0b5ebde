// Packed weights on a GPU: decoding gives the bits of the definition, products are near enough.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "lathe/core/graph_text.h"
#include "lathe/core/number_format.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/testing/cuda_gpu.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::engine {
namespace {

// A matrix of a format as codes: the states of a decode, and its text.
struct PackedCase {
  std::string declarations;  // of the states
  std::string decode;        // decode(...) {...}
  State state;
};

PackedCase packed_case(const std::string& text, std::int64_t rows, std::int64_t columns,
                       std::uint64_t seed, const std::string& prefix = "") {
  const std::shared_ptr<const NumberFormat> format = parse_format(text);
  const FormatFacts& facts = format->facts();
  const Graph matrix =
      parse_graph(fmt::format("x = input() : f32[{},{}]\noutput x <- x", rows, columns));
  Tensor x = random_feed(matrix, {}, seed).at("x");
  for (std::size_t i = 0; i < x.mutable_data<float>().size(); i += 7)
    x.mutable_data<float>()[i] *= std::ldexp(1.0f, static_cast<int>(i % 9) - 4);
  PackedCase result;
  std::vector<float> scales, zeros;
  if (facts.scale_source == ScaleSource::Given) {
    const auto count = static_cast<std::size_t>(format->num_given_scales(rows, columns));
    for (std::size_t i = 0; i < count; ++i) {
      scales.push_back(0.02f + 0.001f * static_cast<float>(i % 13));
      zeros.push_back(static_cast<float>(i % 16));
    }
  }
  const EncodedMatrix encoded = format->encode({.rows = rows,
                                                .columns = columns,
                                                .x = x.data<float>().data(),
                                                .scales = scales.data(),
                                                .zeros = zeros.data()});
  std::string operands = prefix + "codes";
  const auto declare = [&](const std::string& last, Tensor tensor, const Type& type) {
    const std::string name = prefix + last;
    result.declarations += fmt::format("{} = state() : {}\n", name, to_text(type));
    result.state[name] = std::move(tensor);
  };
  const auto bytes = [](const Type& type, const std::vector<std::uint8_t>& values) {
    return Tensor::from<std::uint8_t>(type.dims({}), std::span<const std::uint8_t>(values));
  };
  const Type codes{DType::U8, {Size(rows), Size(format->code_bytes(columns))}};
  declare("codes", bytes(codes, encoded.codes), codes);
  if (!encoded.scales.empty()) {
    const Type local{DType::U8, ops::local_scale_shape(*format, codes, columns)};
    declare("local", bytes(local, encoded.scales), local);
    operands += ", " + prefix + "local";
  } else if (!scales.empty()) {
    operands += ", none";
  }
  if (!scales.empty()) {
    const Type type{DType::F32,
                    ops::given_scale_shape(*format, {DType::F32, {Size(rows), Size(columns)}})};
    declare("scale", Tensor::from<float>(type.dims({}), std::span<const float>(scales)), type);
    operands += ", " + prefix + "scale";
    if (facts.has_zero_point) {
      declare("zero", Tensor::from<float>(type.dims({}), std::span<const float>(zeros)), type);
      operands += ", " + prefix + "zero";
    }
  }
  result.decode =
      fmt::format("decode({}) {{format=\"{}\", columns={}}}", operands, facts.text, columns);
  return result;
}

std::vector<std::string> scaled_formats() {
  std::vector<std::string> result;
  for (const auto& [name, family] : FormatRegistry::instance().all())
    for (const std::string& example : family.examples) {
      const PackedCase packed = packed_case(example, 3, 40, 1);
      const Graph graph =
          parse_graph(packed.declarations + "y = " + packed.decode + "\noutput y <- y");
      if (find_backend("cuda").can_run(graph, graph.at("y"))) result.push_back(example);
    }
  return result;
}

void expect_same_bits(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.dims(), expected.dims());
  const std::span<const float> a = actual.data<float>(), b = expected.data<float>();
  for (std::size_t i = 0, shown = 0; i < a.size() && shown < 3; ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    ADD_FAILURE() << "element " << i << ": " << a[i] << " instead of " << b[i];
    ++shown;
  }
}

TEST(CudaPacked, HasAKernelForMostFormats) {
  EXPECT_GT(scaled_formats().size(), 30u);
}

// Short last blocks, rows that end within a byte, and whole tiles.
TEST(CudaPacked, DecodesToTheBitsOfTheDefinition) {
  LATHE_NEEDS_GPU();
  for (const std::string& format : scaled_formats())
    for (const std::int64_t columns : {83, 128, 1024}) {
      SCOPED_TRACE(fmt::format("{} of {} columns", format, columns));
      const PackedCase packed = packed_case(format, 9, columns, 7);
      // Not a state alone: a decode that is read as it is would be computed ahead, which is the
      // same kernel.
      const Graph graph =
          parse_graph(packed.declarations + "y = " + packed.decode + "\noutput y <- y");
      expect_same_bits(
          make_executor(graph, packed.state, {.device = "cuda"})->run({}).at("y"),
          make_executor(graph, packed.state, {.device = "reference"})->run({}).at("y"));
    }
}

TEST(CudaPacked, LooksUpRowsToTheBitsOfTheDefinition) {
  LATHE_NEEDS_GPU();
  for (const std::string format : {"mxint:8", "mxint:4", "int:4,group=32", "mxfp:e3m2", "nf4"}) {
    SCOPED_TRACE(format);
    const PackedCase packed = packed_case(format, 50, 96, 8);
    const Graph graph =
        parse_graph("ids = input() : i32[T]\n" + packed.declarations + "table = " + packed.decode +
                    "\ny = embedding(ids, table)\noutput y <- y");
    const std::vector<std::int32_t> ids{3, 49, 0, 3, 17};
    const Feed feed{{"ids", Tensor::from<std::int32_t>({5}, std::span<const std::int32_t>(ids))}};
    const auto gpu = make_executor(graph, packed.state, {.device = "cuda"});
    EXPECT_NE(gpu->report().lowered.find("packed_embedding"), std::string::npos);
    expect_same_bits(
        gpu->run(feed).at("y"),
        make_executor(graph, packed.state, {.device = "reference"})->run(feed).at("y"));
  }
}

// What a precision makes of an operand, ties to even; TF32's hardware rounds them up.
double rounded(double x, Precision precision) {
  if (precision == Precision::Float32 || x == 0) return x;
  const int bits = precision == Precision::Bf16 ? 8 : 11;
  const int exponent = std::ilogb(x) - (bits - 1);
  return std::ldexp(std::nearbyint(std::ldexp(x, -exponent)), exponent);
}

// tanh(x . w^T + bias) with a packed weight of 100 outputs, against sums of doubles.
void expect_near_products(const std::string& format, std::int64_t rows, std::int64_t k,
                          Precision precision, const std::function<void(Tensor&)>& change = {}) {
  constexpr std::int64_t kOutputs = 100;
  PackedCase packed = packed_case(format, kOutputs, k, 9);
  packed.state["bias"] =
      random_state(parse_graph("bias = state() : f32[100]\noutput b <- bias"), 3).at("bias");
  // A single row is one at any time: other kernels than for rows whose number is not known.
  const Graph graph = parse_graph(
      fmt::format("x = input() : f32[{},{}]\nbias = state() : f32[{}]\n{}w = {}\n"
                  "h = linear(x, w, bias)\ny = tanh(h)\noutput y <- y",
                  rows == 1 ? "1" : "T", k, kOutputs, packed.declarations, packed.decode));
  const Graph decoded =
      parse_graph(packed.declarations + "w = " + packed.decode + "\noutput w <- w");
  Feed feed = random_feed(graph, {{"T", rows}}, 11);
  if (change) change(feed.at("x"));
  const auto gpu = make_executor(graph, packed.state, {.device = "cuda", .precision = precision});
  EXPECT_NE(gpu->report().lowered.find("packed_linear"), std::string::npos);
  const Tensor actual = gpu->run(feed).at("y");
  State weights = packed.state;
  weights.erase("bias");
  const Tensor w = make_executor(decoded, weights, {.device = "reference"})->run({}).at("w");
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t output = 0; output < kOutputs; ++output) {
      double sum = packed.state.at("bias").at(output), magnitude = std::fabs(sum);
      for (std::int64_t i = 0; i < k; ++i) {
        const double product =
            rounded(feed.at("x").at(row * k + i), precision) * w.at(output * k + i);
        sum += product;
        magnitude += std::fabs(product);
      }
      // A float's product and sum are right to half a unit of 2^-23, tensor cores cut off a whole
      // one. tanh is no steeper than 1 and right to 2 units. In bfloat16 the sum is rounded to 8
      // bits, and many rows see decoded weights so; in TF32 ties of x and of decoded weights may go
      // up, which is half a unit of 2^-10 for both.
      double tolerance = std::ldexp(static_cast<double>(k) * magnitude, -23) + std::ldexp(2.0, -23);
      if (precision == Precision::Bf16)
        tolerance += std::ldexp(std::fabs(sum), -9) + std::ldexp(magnitude, -9);
      if (precision == Precision::Tf32) tolerance += std::ldexp(magnitude, -10);
      ASSERT_NEAR(actual.at(row * kOutputs + output), std::tanh(sum), tolerance)
          << "row " << row << ", output " << output;
    }
}

class PackedProducts : public testing::TestWithParam<std::string> {};

TEST_P(PackedProducts, AreNearThoseOfTheDecodedWeight) {
  LATHE_NEEDS_GPU();
  for (const std::int64_t k : {128, 1024})
    for (const std::int64_t rows : {1, 3, 7, 16, 40}) {
      SCOPED_TRACE(fmt::format("{} rows of {}", rows, k));
      expect_near_products(GetParam(), rows, k, Precision::Float32);
    }
}

TEST_P(PackedProducts, SeeActivationsAsThePrecisionSays) {
  LATHE_NEEDS_GPU();
  if (GetParam() == "nf4") GTEST_SKIP() << "its levels are any floats, which bf16 refuses";
  for (const Precision precision : {Precision::Tf32, Precision::Bf16})
    for (const std::int64_t rows : {1, 3, 16, 40}) {
      SCOPED_TRACE(fmt::format("{} rows in {}", rows, name(precision)));
      expect_near_products(GetParam(), rows, 256, precision);
    }
}

// Numbers of very different size share a group: the small ones keep their digits.
TEST_P(PackedProducts, KeepSmallActivationsBesideLargeOnes) {
  LATHE_NEEDS_GPU();
  for (const std::int64_t rows : {1, 3}) {
    SCOPED_TRACE(fmt::format("{} rows", rows));
    expect_near_products(GetParam(), rows, 256, Precision::Float32, [](Tensor& x) {
      for (std::size_t i = 0; i < x.mutable_data<float>().size(); ++i)
        x.mutable_data<float>()[i] *= std::ldexp(1.0f, -static_cast<int>(i % 24));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, PackedProducts,
                         testing::Values("mxint:8", "mxint:8,block=16", "mxint:8,block=64",
                                         "mxint:8,block=128", "mxint:4", "mxint:4,block=64",
                                         "mxint:4,block=16", "int:4,group=32", "int:4,group=128",
                                         "int:4,group=64,asymmetric", "int:8,channel", "int:8",
                                         "int:4,group=32,dynamic", "int:4,group=32,short",
                                         "mxfp:e4m3", "mxfp:e5m2", "mxfp:e2m1", "mxfp:e3m2",
                                         "fixed:8,4", "nf4"),
                         [](const auto& format) {
                           std::string name = format.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

// What a decoder does with a token: a sum, a norm, products of it side by side, a gate. Its parts
// are one launch for a single row, and others for two.
TEST_P(PackedProducts, AreTheSameBehindANormAndInAGate) {
  LATHE_NEEDS_GPU();
  constexpr std::int64_t kInputs = 384, kOutputs = 200, kGated = 256;
  const PackedCase q = packed_case(GetParam(), kOutputs, kInputs, 21, "q_");
  const PackedCase k = packed_case(GetParam(), kOutputs / 2, kInputs, 22, "k_");
  const PackedCase gate = packed_case(GetParam(), kGated, kInputs, 23, "gate_");
  const PackedCase up = packed_case(GetParam(), kGated, kInputs, 24, "up_");
  const PackedCase down = packed_case(GetParam(), kInputs, kGated, 25, "down_");
  State state;
  std::string declarations;
  for (const PackedCase* packed : {&q, &k, &gate, &up, &down}) {
    declarations += packed->declarations;
    state.insert(packed->state.begin(), packed->state.end());
  }
  const Graph graph = parse_graph(fmt::format(
      R"(
    x = input() : f32[T,{0}]
    r = input() : f32[T,{0}]
    gamma = state() : f32[{0}]
    bias = state() : f32[{1}]
    {2}
    s = add(x, r)
    n = rms_norm(s, gamma) {{eps=0.001}}
    wq = {3}
    q = linear(n, wq, bias)
    wk = {4}
    k = linear(n, wk)
    wg = {5}
    g = linear(n, wg)
    a = silu(g)
    wu = {6}
    u = linear(n, wu)
    m = mul(a, u)
    h = tanh(m)
    wd = {7}
    d = linear(h, wd)
    y = add(d, s)
    output q <- q
    output k <- k
    output m <- m
    output y <- y)",
      kInputs, kOutputs, declarations, q.decode, k.decode, gate.decode, up.decode, down.decode));
  const State others = random_state(
      parse_graph("gamma = state() : f32[384]\nbias = state() : f32[200]\noutput b <- bias\n"
                  "output c <- gamma"),
      3);
  state.insert(others.begin(), others.end());
  for (const std::int64_t rows : {1, 2}) {
    SCOPED_TRACE(fmt::format("{} rows", rows));
    // Sums of 384 products of codes up to 127 by steps of at most 2^4: some 2^-24 of thousands.
    expect_same_on_gpu(graph, state, random_feed(graph, {{"T", rows}}, 31), 2e-2);
  }
}

// Codes by codes: a block's product is a whole number below 2^24, so only sums over blocks round.
TEST(CudaPacked, MultipliesWholeNumbersOfMxint8Blocks) {
  LATHE_NEEDS_GPU();
  constexpr std::int64_t kOutputs = 40, kInputs = 256;
  for (const std::int64_t block : {16, 32, 64, 128})
    for (const std::int64_t rows : {1, 16, 70}) {
      SCOPED_TRACE(fmt::format("{} rows, blocks of {}", rows, block));
      const std::string format = parse_format(fmt::format("mxint:8,block={}", block))->facts().text;
      const PackedCase packed = packed_case(format, kOutputs, kInputs, 12);
      const Graph graph = parse_graph(
          fmt::format("x = input() : f32[T,{}]\n{}w = {}\nq = quantize(x) {{format=\"{}\"}}\n"
                      "y = linear(q, w)\noutput y <- y",
                      kInputs, packed.declarations, packed.decode, format));
      const auto gpu = make_executor(graph, packed.state, {.device = "cuda"});
      EXPECT_NE(gpu->report().lowered.find("encodes=true"), std::string::npos);
      expect_same_on_gpu(graph, packed.state, random_feed(graph, {{"T", rows}}, 13), 1e-5);
    }
}

TEST(CudaPacked, HoldsPackedBytesOnTheGpu) {
  LATHE_NEEDS_GPU();
  const PackedCase packed = packed_case("mxint:8", 1024, 1024, 14);
  const Graph graph = parse_graph("x = input() : f32[T,1024]\n" + packed.declarations +
                                  "w = " + packed.decode + "\ny = linear(x, w)\noutput y <- y");
  const auto gpu = make_executor(graph, packed.state, {.device = "cuda"});
  EXPECT_EQ(gpu->report().state_bytes, 1024 * 1024 + 1024 * 32);
}

}  // namespace
}  // namespace lathe::engine
