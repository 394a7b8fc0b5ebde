#include <cmath>
#include <limits>

#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/attention_cases.h"
#include "lathe/engine/cpu/code_kernels.h"
#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

struct CodeProblem {
  std::int64_t lq, lk, d, q_stride, k_stride;
  bool causal = false;
  std::vector<std::uint8_t> keep = {};
  float scale;
  std::vector<std::int8_t> q, k, v;
  std::vector<float> q_scales, k_scales, v_scales;

  CodeProblem(std::int64_t queries, std::int64_t keys, std::int64_t head, std::int64_t gap = 0)
      : lq(queries),
        lk(keys),
        d(head),
        q_stride(head + gap),
        k_stride(head + 2 * gap),
        scale(1.0f / std::sqrt(static_cast<float>(head))),
        q(numbers(queries * q_stride, 1)),
        k(numbers(keys * k_stride, 2)),
        v(numbers(keys * k_stride, 3)),
        q_scales(scales(queries, 4)),
        k_scales(scales(keys, 5)),
        v_scales(scales(keys, 6)) {}

  std::int64_t visible(std::int64_t query) const { return causal ? query + 1 + lk - lq : lk; }
  bool keeps(std::int64_t key) const {
    return keep.empty() || keep[static_cast<std::size_t>(key)] != 0;
  }
  std::int32_t product(std::int64_t query, std::int64_t key) const {
    std::int32_t sum = 0;
    for (std::int64_t c = 0; c < d; ++c)
      sum += q[static_cast<std::size_t>(query * q_stride + c)] *
             k[static_cast<std::size_t>(key * k_stride + c)];
    return sum;
  }
  // In the order of roundings that the op defines.
  float score(std::int64_t query, std::int64_t key) const {
    return static_cast<float>(product(query, key)) * k_scales[static_cast<std::size_t>(key)] *
           (scale * q_scales[static_cast<std::size_t>(query)]);
  }

 private:
  static std::vector<std::int8_t> numbers(std::int64_t count, std::uint32_t seed) {
    std::vector<std::int8_t> result(static_cast<std::size_t>(count));
    for (std::int8_t& number : result) {
      seed = seed * 1664525u + 1013904223u;
      number = static_cast<std::int8_t>(static_cast<int>(seed >> 24) - 128);
    }
    return result;
  }
  // Of tokens, whose largest numbers differ.
  static std::vector<float> scales(std::int64_t count, std::uint32_t seed) {
    std::vector<float> result(static_cast<std::size_t>(count));
    for (float& scale : result) {
      seed = seed * 1664525u + 1013904223u;
      scale = 0.005f + 0x1p-38f * static_cast<float>(seed);
    }
    return result;
  }
};

class EveryCodeAttention : public testing::TestWithParam<const CodeKernels*> {
 protected:
  // Rows [begin, end) into an otherwise untouched result.
  static void run(const CodeProblem& problem, std::int64_t begin, std::int64_t end,
                  bool packs_before, Matrix& out) {
    const CodeKernels& table = *GetParam();
    const AlignedBuffer scratch(table.attention_scratch_bytes(problem.lk, problem.d));
    std::memset(scratch.data(), 0xff, static_cast<std::size_t>(scratch.size()));
    CodeAttentionArgs args{};
    args.lq = problem.lq;
    args.lk = problem.lk;
    args.d = problem.d;
    args.q_begin = begin;
    args.q_end = end;
    args.q = problem.q.data();
    args.k = problem.k.data();
    args.v = problem.v.data();
    args.q_scales = problem.q_scales.data();
    args.k_scales = problem.k_scales.data();
    args.v_scales = problem.v_scales.data();
    args.out = out.data();
    args.q_stride = problem.q_stride;
    args.k_stride = problem.k_stride;
    args.out_stride = out.stride();
    args.scale = problem.scale;
    args.causal = problem.causal;
    args.keep = problem.keep.empty() ? nullptr : problem.keep.data();
    args.scratch = scratch.data();
    attend(table, args, packs_before);
    EXPECT_TRUE(out.guards_are_intact());
  }
  static Matrix run(const CodeProblem& problem) {
    Matrix out(problem.lq, problem.d, 5);
    run(problem, 0, problem.lq, false, out);
    return out;
  }

  // Scores are exact to the bit, so what is left are the exponential, within four units, the sums
  // over lk keys, and the difference of two scores, half a unit of each. Weights may be fixed-point
  // numbers that end 31 bits below the largest scale of values, 0.021 here: 1e-11 each, times
  // values up to 127 for as many keys as have one.
  static void expect_attention(const CodeProblem& problem, const Matrix& out) {
    for (std::int64_t i = 0; i < problem.lq; ++i) {
      const std::int64_t visible = problem.visible(i);
      bool any_kept = false;
      float top = -std::numeric_limits<float>::infinity();
      for (std::int64_t j = 0; j < visible; ++j) {
        if (!problem.keeps(j)) continue;
        any_kept = true;
        top = std::max(top, problem.score(i, j));
      }
      std::vector<double> weights;
      double total = 0, farthest = 0;
      for (std::int64_t j = 0; j < visible; ++j) {
        const double below = any_kept ? double{problem.score(i, j)} - double{top} : 0.0;
        const bool counts = !any_kept || (problem.keeps(j) && below >= -44);
        if (counts) farthest = std::max(farthest, -below);
        weights.push_back(counts ? std::exp(below) : 0.0);
        total += weights.back();
      }
      const double units = farthest + 8 + 2.0 * static_cast<double>(problem.lk);
      for (std::int64_t c = 0; c < problem.d; ++c) {
        double exact = 0, magnitude = 0;
        for (std::int64_t j = 0; j < visible; ++j) {
          const double value = double{problem.v_scales[static_cast<std::size_t>(j)]} *
                               problem.v[static_cast<std::size_t>(j * problem.k_stride + c)];
          exact += weights[static_cast<std::size_t>(j)] * value / total;
          magnitude += weights[static_cast<std::size_t>(j)] * std::abs(value) / total;
        }
        ASSERT_NEAR(out(i, c), exact, units * kUnit * magnitude + 1e-8)
            << "row " << i << " column " << c;
      }
    }
  }
};

constexpr std::int64_t kCodeShapes[][4] = {{1, 1, 1, 0},    {1, 40, 64, 64},  {3, 5, 7, 1},
                                           {33, 33, 64, 0}, {40, 70, 36, 12}, {70, 70, 80, 0},
                                           {5, 600, 9, 3}};

TEST_P(EveryCodeAttention, AgreesWithADoubleLoop) {
  for (const auto& [lq, lk, d, gap] : kCodeShapes) {
    SCOPED_TRACE(testing::Message() << lq << " x " << lk << " x " << d);
    const CodeProblem problem(lq, lk, d, gap);
    expect_attention(problem, run(problem));
  }
}

TEST_P(EveryCodeAttention, LeavesOutKeysThatAreMaskedOrLater) {
  for (const auto& [lq, lk, d, gap] : kCodeShapes) {
    SCOPED_TRACE(testing::Message() << lq << " x " << lk << " x " << d);
    over_masks(CodeProblem(lq, lk, d, gap),
               [](const CodeProblem& problem) { expect_attention(problem, run(problem)); });
  }
}

TEST_P(EveryCodeAttention, GivesARangeOfQueriesTheBitsOfTheWhole) {
  expect_bits_of_the_whole_in_ranges<CodeProblem>(
      [](const CodeProblem& problem, std::int64_t begin, std::int64_t end, bool packs_before,
         Matrix& out) { run(problem, begin, end, packs_before, out); });
}

TEST_P(EveryCodeAttention, SaysWhereItsTilesBegin) {
  expect_tiles(GetParam()->attention_tile);
}

// Two keys whose scores are a unit apart, so steep that the lower weighs nothing: a wrong bit of a
// score would show in which value comes out.
TEST_P(EveryCodeAttention, HasScoresThatAreRightToTheBit) {
  for (std::int64_t lk : {2, 40, 130}) {
    CodeProblem problem(60, lk, 64);
    problem.scale = 1e9f;
    const Matrix out = run(problem);
    for (std::int64_t i = 0; i < problem.lq; ++i) {
      std::vector<double> expected(static_cast<std::size_t>(problem.d));
      float top = -std::numeric_limits<float>::infinity();
      for (std::int64_t j = 0; j < lk; ++j) top = std::max(top, problem.score(i, j));
      int winners = 0;
      for (std::int64_t j = 0; j < lk; ++j) {
        if (problem.score(i, j) != top) continue;
        ++winners;
        for (std::int64_t c = 0; c < problem.d; ++c)
          expected[static_cast<std::size_t>(c)] +=
              double{problem.v_scales[static_cast<std::size_t>(j)]} *
              problem.v[static_cast<std::size_t>(j * problem.k_stride + c)];
      }
      for (std::int64_t c = 0; c < problem.d; ++c)
        ASSERT_NEAR(out(i, c), expected[static_cast<std::size_t>(c)] / winners, 3e-7);
    }
  }
}

TEST_P(EveryCodeAttention, KeepsPrecisionWhereOneValueIsMuchLargerThanTheRest) {
  CodeProblem problem(20, 50, 16);
  problem.v_scales[7] *= 100;
  problem.keep.assign(50, 1);
  problem.keep[7] = 0;
  expect_attention(problem, run(problem));
}

TEST_P(EveryCodeAttention, GivesNanWhereAScaleIs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::vector<float> CodeProblem::*const scales :
       {&CodeProblem::k_scales, &CodeProblem::v_scales}) {
    CodeProblem problem(20, 50, 16);
    (problem.*scales)[31] = nan;
    const Matrix out = run(problem);
    for (std::int64_t i = 0; i < problem.lq; ++i)
      for (std::int64_t c = 0; c < problem.d; ++c) ASSERT_TRUE(std::isnan(out(i, c)));
  }
  for (const bool has_mask : {false, true}) {
    CodeProblem problem(20, 50, 16);
    problem.q_scales[3] = nan;
    if (has_mask) {
      problem.keep.assign(50, 1);
      problem.keep[7] = 0;
    }
    const Matrix out = run(problem);
    for (std::int64_t i = 0; i < problem.lq; ++i) ASSERT_EQ(std::isnan(out(i, 0)), i == 3);
  }
}

INSTANTIATE_TEST_SUITE_P(, EveryCodeAttention, testing::ValuesIn(every_code_kernels()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace lathe::engine
