#include "lathe/core/pass.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

class ConvolutionSteps : public EveryIsa {
 protected:
  // Compares with the reference, and bit for bit between numbers of threads.
  void expect_right(const std::string& text, std::int64_t images, double tolerance = 2e-5) const {
    SCOPED_TRACE(text);
    const Graph graph = parse_graph(text);
    State state = random_state(graph, 3);
    if (state.contains("v"))  // a variance
      for (float& value : state.at("v").mutable_data<float>()) value = value * value + 0.5f;
    const Feed feed = random_feed(graph, {{"B", images}}, 5);
    const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
    const Feed alone = CpuExecutor(graph, state, {.isa = GetParam()}).run(feed);
    expect_near(alone, expected, tolerance);
    ThreadPool pool(3);
    expect_identical(CpuExecutor(graph, state, {.pool = &pool, .isa = GetParam()}).run(feed),
                     alone);
  }
};

// A convolution by itself, in planes, and its gradients.
std::string one(std::int64_t channels, std::int64_t size, std::int64_t filters, std::int64_t kernel,
                std::int64_t stride, std::int64_t pad, std::int64_t dilation = 1,
                std::int64_t groups = 1) {
  const std::int64_t out = (size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  const std::string attributes =
      fmt::format("{{strides=[{0},{0}], pads=[{1},{1},{1},{1}], dilations=[{2},{2}], groups={3}}}",
                  stride, pad, dilation, groups);
  return fmt::format(R"(
    x = input() : f32[B,{0},{1},{1}]
    dy = input() : f32[B,{2},{3},{3}]
    w = state() : f32[{2},{4},{5},{5}]
    b = state() : f32[{2}]
    y = conv2d(x, w, b) {6}
    dx = conv2d_input_gradient(dy, w) {6} : f32[B,{0},{1},{1}]
    dw = conv2d_weight_gradient(dy, x) {6} : f32[{2},{4},{5},{5}]
    output y <- y
    output dx <- dx
    output dw <- dw)",
                     channels, size, filters, out, channels / groups, kernel, attributes);
}

TEST_P(ConvolutionSteps, AreRightForOddShapes) {
  std::int64_t images = 0;
  for (const std::int64_t channels : {1, 3, 7, 17})
    for (const std::int64_t size : {1, 5, 14, 31})
      for (const std::int64_t kernel : {1, 3, 5, 7})
        for (const std::int64_t stride : {1, 2}) {
          const std::int64_t pad = (kernel + channels) % 4;
          // The largest take the reference minutes on an emulated processor.
          if (size + 2 * pad < kernel || channels * size * kernel > 800) continue;
          images = images % 3 + 1;
          expect_right(one(channels, size, 2 * channels + 1, kernel, stride, pad), images, 1e-4);
        }
}

TEST_P(ConvolutionSteps, AreRightForSevenPixelsGroupsAndDilations) {
  for (const std::int64_t images : {1, 2, 5}) {
    expect_right(one(16, 7, 40, 3, 1, 1), images, 1e-4);
    expect_right(one(16, 14, 16, 3, 2, 1), images, 1e-4);
    expect_right(one(6, 9, 4, 3, 1, 2, 2), images, 1e-4);
    expect_right(one(6, 11, 8, 3, 3, 1, 2, 2), images, 1e-4);
    expect_right(one(8, 9, 8, 3, 1, 1, 1, 8), images, 1e-4);
    expect_right(one(8, 13, 24, 2, 3, 0, 1, 4), images, 1e-4);
  }
}

// Two blocks of a residual network, a stem and a head.
std::string network(std::int64_t size) {
  return fmt::format(R"(
    x = input() : f32[B,3,{0},{0}]
    w0 = state() : f32[24,3,7,7]
    w1 = state() : f32[24,24,3,3]
    w2 = state() : f32[24,24,3,3]
    w3 = state() : f32[40,24,3,3]
    w4 = state() : f32[40,24,1,1]
    g = state() : f32[24]
    h = state() : f32[24]
    m = state() : f32[24]
    v = state() : f32[24]
    b = state() : f32[40]
    w5 = state() : f32[5,40]
    c0 = conv2d(x, w0) {{strides=[2,2], pads=[3,3,3,3]}}
    n0 = batch_norm(c0, g, h, m, v)
    a0 = relu(n0)
    p0 = max_pool2d(a0) {{kernel=[3,3], strides=[2,2], pads=[1,1,1,1]}}
    c1 = conv2d(p0, w1, g) {{pads=[1,1,1,1]}}
    n1 = batch_norm(c1, g, h, m, v)
    a1 = relu(n1)
    c2 = conv2d(a1, w2) {{pads=[1,1,1,1]}}
    n2 = batch_norm(c2, g, h, m, v)
    s2 = add(n2, p0)
    a2 = relu(s2)
    c3 = conv2d(a2, w3, b) {{strides=[2,2], pads=[1,1,1,1]}}
    c4 = conv2d(a2, w4, b) {{strides=[2,2]}}
    s4 = add(c3, c4)
    a4 = sigmoid(s4)
    q4 = avg_pool2d(a4) {{kernel=[2,2], strides=[1,1], pads=[1,1,0,0]}}
    e4 = mean(q4) {{axes=[2,3]}}
    y = linear(e4, w5)
    output y <- y
    output middle <- a2
    output pooled <- q4)",
                     size);
}

TEST_P(ConvolutionSteps, OfAResidualNetworkAreRight) {
  for (const std::int64_t images : {1, 3})
    for (const std::int64_t size : {28, 31}) expect_right(network(size), images, 2e-4);
}

// Images go through the layers in parts; the head of the network alone, so that nothing is turned.
TEST_P(ConvolutionSteps, GiveAnImageTheSameBitsInAnyPartOfTheBatch) {
  Graph graph = parse_graph(network(12));
  for (const char* const name : {"middle", "pooled"}) graph.remove_output(name);
  State state = random_state(graph, 3);
  for (float& value : state.at("v").mutable_data<float>()) value = value * value + 0.5f;
  const Feed feed = random_feed(graph, {{"B", 37}}, 5);
  const Tensor& all = feed.at("x");
  CpuExecutor executor(graph, state, {.isa = GetParam()});
  const Feed together = executor.run(feed);
  EXPECT_EQ(executor.report().capacity.at("B"), 13);  // of 37, in three parts
  const std::int64_t floats = all.num_elements() / 37;
  for (const std::int64_t image : {0, 8, 36}) {
    Tensor one(DType::F32, {1, 3, 12, 12});
    for (std::int64_t i = 0; i < floats; ++i)
      one.mutable_data<float>()[static_cast<std::size_t>(i)] =
          all.data<float>()[static_cast<std::size_t>(image * floats + i)];
    const Feed alone = executor.run({{"x", one}});
    for (std::int64_t label = 0; label < 5; ++label)
      EXPECT_EQ(alone.at("y").at(label), together.at("y").at(image * 5 + label));
  }
}

TEST(ChannelsLast, FusesWhatFollowsAConvolution) {
  const Graph graph = parse_graph(network(28));
  const Graph lowered = lower(graph, find_backend("cpu"));
  EXPECT_EQ(lowered.nodes_of("image_conv2d").size(), 5u);
  EXPECT_TRUE(lowered.nodes_of("batch_norm").empty());
  EXPECT_TRUE(lowered.nodes_of("relu").empty());
  EXPECT_TRUE(lowered.nodes_of("add").empty());
  EXPECT_EQ(lowered.nodes_of("transpose").size(), 2u);  // the outputs `middle` and `pooled`
  int first = 0;
  for (const NodeId id : lowered.nodes_of("image_conv2d"))
    first += lowered.attribute(id).flag("x_last") ? 0 : 1;
  EXPECT_EQ(first, 1);  // the images that come in
}

// A part as it is trained: batch norms of their own statistics and all gradients, behind a
// convolution that moves the images far from 0 for the second norm; `residual` is added at last,
// dz in the gradient of what relu made.
std::string trained_part(std::int64_t channels, std::int64_t size,
                         const std::string& residual = "a1") {
  return fmt::format(R"(
    x = input() : f32[B,3,{1},{1}]
    dz = input() : f32[B,{0},{1},{1}]
    w1 = state() : f32[{0},3,3,3]
    w2 = state() : f32[{0},{0},3,3]
    g = state() : f32[{0}]
    h = state() : f32[{0}]
    c1 = conv2d(x, w1) {{pads=[1,1,1,1]}}
    n1 = normalize_batch(c1, g, h)
    a1 = relu(n1)
    c2 = conv2d(a1, w2) {{pads=[1,1,1,1]}}
    n2 = normalize_batch(c2, h, g)
    z = add(n2, {2})
    d2 = normalize_batch_gradient(dz, c2, h, n2#1, n2#2)
    dw2 = conv2d_weight_gradient(d2, a1) {{pads=[1,1,1,1]}} : f32[{0},{0},3,3]
    da1 = conv2d_input_gradient(d2, w2) {{pads=[1,1,1,1]}} : f32[B,{0},{1},{1}]
    s1 = add(da1, dz)
    m1 = map_gradient({3}, n1) {{function="relu"}}
    d1 = normalize_batch_gradient(m1, c1, g, n1#1, n1#2)
    dw1 = conv2d_weight_gradient(d1, x) {{pads=[1,1,1,1]}} : f32[{0},3,3,3]
    output z <- z
    output mean <- n2#1
    output variance <- n2#2
    output dw1 <- dw1
    output dw2 <- dw2
    output dg <- d1#1
    output dh <- d1#2)",
                     channels, size, residual, residual == "a1" ? "s1" : "da1");
}

TEST_P(ConvolutionSteps, OfAPartThatIsTrainedAreRight) {
  for (const std::int64_t images : {1, 5, 70})
    for (const std::int64_t channels : {5, 16, 32, 33})
      for (const char* const residual : {"a1", "dz"})
        expect_right(trained_part(channels, images > 5 ? 3 : 9, residual), images, 3e-4);
}

// Somebody who reads the first norm's result keeps it apart from the convolution behind it.
TEST_P(ConvolutionSteps, HaveTheSameBitsWithTheNormInFrontOrApart) {
  for (const char* const residual : {"a1", "dz"})
    for (const std::int64_t channels : {16, 32})
      for (const Precision precision : {Precision::Float32, Precision::Bf16}) {
        const std::string text = trained_part(channels, 9, residual);
        const Graph graph = parse_graph(text), apart = parse_graph(text + "\n    output n1 <- n1");
        const State state = random_state(graph, 3);
        const Feed feed = random_feed(graph, {{"B", 5}}, 5);
        ThreadPool pool(3);
        const ExecutionOptions options{.pool = &pool, .isa = GetParam(), .precision = precision};
        Feed expected = CpuExecutor(apart, state, options).run(feed);
        expected.erase("n1");
        expect_identical(CpuExecutor(graph, state, options).run(feed), expected);
      }
}

TEST(ChannelsLast, TurnsNoImagesBetweenTheLayersOfATraining) {
  const Graph lowered = lower(parse_graph(trained_part(16, 9)), find_backend("cpu"));
  EXPECT_TRUE(lowered.nodes_of("normalize_channels").empty());
  EXPECT_TRUE(lowered.nodes_of("normalize_batch").empty());
  EXPECT_EQ(lowered.nodes_of("transpose").size(), 2u);  // dz, and the output z
}

// Relu's result is the convolution's, for the addition and the gradients to read.
TEST(ChannelsLast, MakesWhatAConvolutionReadsImageByImage) {
  const Graph lowered = lower(parse_graph(trained_part(16, 9)), find_backend("cpu"));
  const std::vector<NodeId> convolutions = lowered.nodes_of("image_normed_conv2d_statistics");
  ASSERT_EQ(convolutions.size(), 1u);
  const Value made{convolutions[0], 4};
  for (const NodeId id : lowered.nodes_of("image_relu_normed_conv2d_gradients"))
    EXPECT_EQ(lowered.input(id, 1), made);
  const std::vector<NodeId> norms = lowered.nodes_of("fused_normalize_channels");
  ASSERT_EQ(norms.size(), 1u);  // the second one, which no convolution reads
  EXPECT_EQ(lowered.input(norms[0], 4), made);
}

TEST(ChannelsLast, NeverWritesWhatGradientsCanMakeAgain) {
  const Graph lowered = lower(parse_graph(trained_part(16, 9, "dz")), find_backend("cpu"));
  const std::vector<NodeId> convolutions = lowered.nodes_of("image_normed_conv2d_statistics");
  ASSERT_EQ(convolutions.size(), 1u);
  EXPECT_FALSE(lowered.has_uses({convolutions[0], 4}));
  for (const NodeId id : lowered.nodes_of("image_relu_normed_conv2d_gradients"))
    EXPECT_EQ(lowered.input(id, 1), lowered.input(convolutions[0], 0));
}

TEST(ChannelsLast, GoesThroughImagesOnceForAConvolutionAndItsNorm) {
  const Graph lowered = lower(parse_graph(trained_part(16, 9)), find_backend("cpu"));
  EXPECT_EQ(lowered.nodes_of("image_conv2d_statistics").size(), 1u);
  EXPECT_EQ(lowered.nodes_of("image_normed_conv2d_statistics").size(), 1u);
  EXPECT_TRUE(lowered.nodes_of("image_conv2d").empty());
  EXPECT_TRUE(lowered.nodes_of("channel_statistics").empty());
  // The first convolution's images need no gradient.
  EXPECT_TRUE(lowered.nodes_of("image_normed_conv2d_gradients").empty());
  EXPECT_EQ(lowered.nodes_of("normalize_channels_gradient").size(), 1u);
  EXPECT_EQ(lowered.nodes_of("image_conv2d_weight_gradient").size(), 1u);
  // With relu in front of it and the addition behind that.
  EXPECT_EQ(lowered.nodes_of("image_relu_normed_conv2d_gradients").size(), 1u);
  EXPECT_TRUE(lowered.nodes_of("relu_channel_gradients").empty());
  EXPECT_TRUE(lowered.nodes_of("map_gradient").empty());
  EXPECT_TRUE(lowered.nodes_of("add").empty());
  EXPECT_TRUE(lowered.nodes_of("relu").empty());
}

// Somebody else reads what goes through relu or the norm, or windows are two pixels apart.
TEST(ChannelsLast, LeavesGradientsApartThatAreNotOfOneKind) {
  std::string text = trained_part(16, 9);
  const Graph with_dx = lower(parse_graph(text + "\n    output da1 <- da1"), find_backend("cpu"));
  EXPECT_EQ(with_dx.nodes_of("image_normed_conv2d_gradients").size(), 1u);
  EXPECT_EQ(with_dx.nodes_of("relu_channel_gradients").size(), 1u);
  text += "\n    output d2 <- d2";
  EXPECT_TRUE(lower(parse_graph(text), find_backend("cpu"))
                  .nodes_of("image_normed_conv2d_gradients")
                  .empty());
  EXPECT_TRUE(lower(parse_graph(trained_part(20, 9)), find_backend("cpu"))
                  .nodes_of("image_normed_conv2d_gradients")
                  .empty());
}

// Rounded images and packed weights: the same bits as the definition's, which is of whole numbers.
// With weights of so many bits.
std::string rounded_network(std::int64_t size, int bits) {
  return fmt::format(R"(
    x = input() : f32[B,3,{0},{0}]
    s = state() {{role="scale"}} : f32[]
    c0 = state() {{role="codes"}} : u8[40,{2}]
    t0 = state() {{role="scale"}} : f32[40]
    b = state() : f32[40]
    c1 = state() {{role="codes"}} : u8[40,{3}]
    c2 = state() {{role="codes"}} : u8[40,{4}]
    w0 = decode(c0, none, t0) {{axis=0, columns=27, format="int:{1},channel", shape=[40,3,3,3]}} : f32[40,3,3,3]
    w1 = decode(c1, none, t0) {{axis=0, columns=360, format="int:{1},channel", shape=[40,40,3,3]}} : f32[40,40,3,3]
    w2 = decode(c2, none, t0) {{axis=0, columns=40, format="int:{1},channel", shape=[40,40,1,1]}} : f32[40,40,1,1]
    q0 = quantize(x, s) {{format="int:8"}}
    y0 = conv2d(q0, w0, b) {{pads=[1,1,1,1]}}
    a0 = relu(y0)
    q1 = quantize(a0, s) {{format="int:8"}}
    y1 = conv2d(q1, w1) {{strides=[2,2], pads=[1,1,1,1]}}
    y2 = conv2d(q1, w2, b) {{strides=[2,2]}}
    y3 = conv2d(q1, w1) {{strides=[2,2], dilations=[2,1], pads=[2,1,2,1]}}
    y4 = conv2d(q1, w1) {{strides=[2,2], dilations=[1,2], pads=[1,2,1,2]}}
    y5 = add(y1, y3)
    y6 = add(y4, y5)
    r = add(y6, y2)
    a = relu(r)
    output a <- a
    output y0 <- y0)",
                     size, bits, (27 * bits + 7) / 8, 360 * bits / 8, 40 * bits / 8);
}

TEST_P(ConvolutionSteps, OfWholeNumbersHaveTheBitsOfTheirDefinition) {
  for (const auto& [size, images, bits] :
       {std::array<std::int64_t, 3>{5, 1, 8}, {5, 3, 4}, {14, 3, 8}, {31, 1, 8}, {31, 3, 4}}) {
    SCOPED_TRACE(testing::Message() << images << " images of " << size << ", " << bits << " bits");
    const Graph graph = parse_graph(rounded_network(size, static_cast<int>(bits)));
    State state = random_state(graph, 3);
    std::mt19937 random(9);
    for (auto& [name, tensor] : state) {
      if (tensor.dtype() == DType::U8)
        for (std::uint8_t& code : tensor.mutable_data<std::uint8_t>())
          code = static_cast<std::uint8_t>(random() % 256);
      if (name == "s") tensor.mutable_data<float>()[0] = 0.01f;
    }
    Feed feed = random_feed(graph, {{"B", images}}, 5);
    if (images == 3) feed.at("x").mutable_data<float>()[7] = std::nanf("");
    const Feed expected =
        make_executor(graph, state, {.device = "reference", .uses_integers = true})->run(feed);
    CpuExecutor executor(graph, state, {.isa = GetParam(), .uses_integers = true});
    expect_near(executor.run(feed), expected, 0);
    bool has_codes = false;
    for (const PlannedStep& step : executor.report().steps)
      has_codes = has_codes || step.op == "image_code_conv2d";
    EXPECT_TRUE(has_codes);
    ThreadPool pool(3);
    expect_near(CpuExecutor(graph, state, {.pool = &pool, .isa = GetParam(), .uses_integers = true})
                    .run(feed),
                expected, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, ConvolutionSteps, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
