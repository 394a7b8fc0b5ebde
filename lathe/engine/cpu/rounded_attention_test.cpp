// Attention whose weights are rounded, on every instruction set.

#include "lathe/core/pass.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/executor_cases.h"
#include "lathe/ops/attention_weight_format.h"

namespace lathe::engine {
namespace {

const char* const kFormats[] = {"int:4",     "int:3,asymmetric", "int:4,dynamic", "mxint:4,block=4",
                                "fixed:5,4", "ternary",          "binary:scaled"};

class RoundedAttention : public EveryIsa {
 protected:
  Feed run(const Graph& graph, const Feed& feed, ThreadPool* pool = nullptr) const {
    return make_executor(graph, random_state(graph, 1), {.pool = pool, .isa = GetParam()})
        ->run(feed);
  }
  // Bits may differ from the reference's; no weight lies so near the middle of two numbers that the
  // difference decides where it goes.
  void expect_reference(const Graph& graph, const Feed& feed) const {
    const Feed outputs = run(graph, feed);
    expect_near(outputs,
                make_executor(graph, random_state(graph, 1), {.device = "reference"})->run(feed),
                3e-6);
    ThreadPool two(2);
    expect_identical(run(graph, feed, &two), outputs);
  }
};

TEST_P(RoundedAttention, ComputesTheSameAsTheReference) {
  for (const std::string format : kFormats)
    for (const std::string more : {"causal=false", "causal=true", "kv_heads=1"}) {
      const std::string attributes = "{heads=2, " + more + ", weight_format=\"" + format + "\"}";
      SCOPED_TRACE(attributes);
      const std::string width = more == "kv_heads=1" ? "5" : "10";
      const Graph graph = parse_graph(
          "symbols B, L\nq = input() : f32[B,L,10]\n" +                //
          std::string("k = input() : f32[B,L,") + width + "]\n" +      //
          "v = input() : f32[B,L," + width + "]\n" +                   //
          "dy = input() : f32[B,L,10]\nmask = input() : i32[B,L]\n" +  //
          "y = attention(q, k, v, mask) " + attributes + "\n" +
          "dq = attention_gradient(dy, q, k, v, mask) " + attributes +
          "\noutput y <- y\noutput dq <- dq\noutput dk <- dq#1\n" + "output dv <- dq#2\n");
      Feed feed = random_feed(graph, {{"B", 3}, {"L", 19}}, 3);
      // Holes, padding and, where nothing later is seen, a first key that is always there.
      for (std::size_t b = 0; b < 3; ++b) feed["mask"].mutable_data<std::int32_t>()[19 * b] = 1;
      expect_reference(graph, feed);
    }
}

TEST_P(RoundedAttention, DropsWhatTheReferenceDrops) {
  for (const std::string format : kFormats) {
    SCOPED_TRACE(format);
    const std::string operands =
        "q, k, v, none, offsets, random, examples) {heads=2, "
        "dropout=0.25, site=3, weight_format=\"" +
        format + "\"}\n";
    // A plan drops only where something is trained.
    const Graph graph = parse_graph(
        "symbols T, S\nq = input() : f32[T,6]\nk = input() : f32[T,6]\nv = input() : f32[T,6]\n"
        "dy = input() : f32[T,6]\noffsets = input() : i32[S+1]\nrandom = input() : i32[3]\n"
        "examples = input() : i32[S]\ncount = state() : f32[]\nmore = add(count, count)\n"
        "state count <- more\ny = attention(" +
        operands + "dq = attention_gradient(dy, " + operands +
        "output y <- y\noutput dq <- dq\noutput dk <- dq#1\noutput dv <- dq#2\n");
    Feed feed = random_feed(graph, {{"T", 30}, {"S", 2}}, 4);
    feed["offsets"] = Tensor::from<std::int32_t>({3}, {0, 11, 30});
    feed["random"] = Tensor::from<std::int32_t>({3}, {1, 2, 3});
    feed["examples"] = Tensor::from<std::int32_t>({2}, {7, 9});
    expect_reference(graph, feed);
  }
}

TEST_P(RoundedAttention, GivesPaddedBatchesTheBitsOfPackedOnes) {
  for (const std::string format : kFormats)
    for (const std::string causal : {"false", "true"}) {
      const std::string attributes =
          "{heads=2, causal=" + causal + ", weight_format=\"" + format + "\"}\noutput y <- y\n";
      SCOPED_TRACE(attributes);
      const Graph packed = parse_graph(
          "symbols T, S\nq = input() : f32[T,6]\nk = input() : f32[T,6]\nv = input() : f32[T,6]\n"
          "offsets = input() : i32[S+1]\ny = attention(q, k, v, none, offsets) " +
          attributes);
      const Graph padded = parse_graph(
          "symbols B, L\nq = input() : f32[B,L,6]\nk = input() : f32[B,L,6]\n"
          "v = input() : f32[B,L,6]\nmask = input() : i32[B,L]\ny = attention(q, k, v, mask) " +
          attributes);
      // 21 tokens, and 37.
      Feed tokens = random_feed(packed, {{"T", 58}, {"S", 2}}, 5);
      tokens["offsets"] = Tensor::from<std::int32_t>({3}, {0, 21, 58});
      Feed rows = random_feed(padded, {{"B", 2}, {"L", 37}}, 6);
      for (std::size_t i = 0; i < 74; ++i)
        rows["mask"].mutable_data<std::int32_t>()[i] = i < 21 || i >= 37 ? 1 : 0;
      for (const char* const name : {"q", "k", "v"}) {
        const std::span<const float> from = tokens[name].data<float>();
        const std::span<float> to = rows[name].mutable_data<float>();
        std::copy_n(from.begin(), 21 * 6, to.begin());
        std::copy_n(from.begin() + 21 * 6, 37 * 6, to.begin() + 37 * 6);
      }
      const Feed packed_outputs = run(packed, tokens), padded_outputs = run(padded, rows);
      const std::span<const float> a = packed_outputs.at("y").data<float>();
      const std::span<const float> b = padded_outputs.at("y").data<float>();
      EXPECT_TRUE(std::equal(a.begin(), a.begin() + 21 * 6, b.begin()));
      EXPECT_TRUE(std::equal(a.begin() + 21 * 6, a.end(), b.begin() + 37 * 6));
    }
}

TEST_P(RoundedAttention, GivesARowTheSameBitsInEveryRangeOfQueries) {
  const std::int64_t length = 45, d = 7;
  const Matrix q = Matrix::random(length, d, 1, 1), k = Matrix::random(length, d, 2, 2),
               v = Matrix::random(length, d, 3, 3);
  struct Context {
    ops::AttentionWeightFormat format;
    Isa isa;
  };
  const Context context{ops::AttentionWeightFormat("mxint:4,block=4"), GetParam()};
  for (const bool causal : {false, true}) {
    const auto run_range = [&](std::int64_t begin, std::int64_t end, Matrix& out) {
      Matrix scratch(1, table().attention_scratch_size(length, length, d));
      AttentionArgs args{};
      args.lq = args.lk = length;
      args.d = d;
      args.q_begin = begin;
      args.q_end = end;
      args.q = q.data();
      args.k = k.data();
      args.v = v.data();
      args.out = out.data();
      args.q_stride = q.stride();
      args.k_stride = k.stride();
      args.v_stride = v.stride();
      args.out_stride = out.stride();
      args.scale = 0.5f;
      args.causal = causal;
      args.scratch = scratch.data();
      args.rounding = {
          [](const void* at, float* weights, const std::uint8_t* keep, std::int64_t count) {
            const auto& self = *static_cast<const Context*>(at);
            self.format.round({weights, static_cast<std::size_t>(count)}, keep, self.isa);
          },
          &context};
      table().attention(args);
      EXPECT_TRUE(scratch.guards_are_intact());
      EXPECT_TRUE(out.guards_are_intact());
    };
    Matrix whole(length, d, 1), parts(length, d, 1);
    run_range(0, length, whole);
    for (const auto& [begin, end] : {std::pair{0, 1}, {1, 13}, {13, 14}, {14, 45}})
      run_range(begin, end, parts);
    EXPECT_TRUE(parts.has_same_bits(whole)) << causal;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, RoundedAttention, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
