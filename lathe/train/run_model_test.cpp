#include "lathe/train/run_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/models/imported.h"

namespace lathe::train {
namespace {

using io::refusal;
using testing::ElementsAre;

class RunModel : public testing::Test {
 protected:
  Feed run(const Feed& tensors) const {
    return run_model(model_, tensors, {.device = "reference"});
  }
  std::string refused(const Feed& tensors) const {
    return refusal("", [&] { run(tensors); });
  }
  static Tensor ids(DType dtype = DType::I32) {
    return Tensor::from<std::int32_t>({2, 3}, {2, 5, 3, 2, 7, 3}).converted(dtype);
  }
  static Tensor ones() { return Tensor::from<std::int32_t>({2, 3}, {1, 1, 1, 1, 1, 1}); }

  io::ScratchDirectory scratch_;
  io::Model model_ = io::load_model(io::write_tiny_bert(scratch_, "m"));
};

TEST_F(RunModel, GivesEveryOutputThatItsInputsAllow) {
  const Feed without = run({{"input_ids", ids()}, {"attention_mask", ones()}});
  ASSERT_EQ(without.size(), 1u);
  EXPECT_THAT(without.at("logits").dims(), ElementsAre(2, 2));
  const Feed with = run({{"input_ids", ids()},
                         {"attention_mask", ones()},
                         {"labels", Tensor::from<std::int32_t>({2}, {0, 1})}});
  EXPECT_TRUE(identical(with.at("logits"), without.at("logits")));
  EXPECT_EQ(with.at("loss").num_elements(), 1);
}

TEST_F(RunModel, AddsAnInputThatTheTaskKnows) {
  const Tensor plain = run({{"input_ids", ids()}, {"attention_mask", ones()}}).at("logits");
  const auto typed = [&](const Tensor& types) {
    return run({{"input_ids", ids()}, {"attention_mask", ones()}, {"token_type_ids", types}})
        .at("logits");
  };
  EXPECT_TRUE(identical(typed(Tensor(DType::I32, {2, 3})), plain));
  EXPECT_FALSE(identical(typed(ones()), plain));
}

TEST_F(RunModel, TakesIdsOfAnotherTypeWhereTheyFit) {
  const Tensor plain = run({{"input_ids", ids()}, {"attention_mask", ones()}}).at("logits");
  EXPECT_TRUE(identical(
      run({{"input_ids", ids(DType::I64)}, {"attention_mask", ones()}}).at("logits"), plain));
  const Tensor large = Tensor::from<std::int64_t>({1, 1}, {std::int64_t{1} << 40});
  EXPECT_EQ(refused({{"input_ids", large}, {"attention_mask", ones()}}),
            "input \"input_ids\" holds i64 numbers that i32 cannot: expected i32[B,L]");
  EXPECT_EQ(refused({{"input_ids", ids(DType::F32)}, {"attention_mask", ones()}}),
            "input \"input_ids\" is f32: expected i32[B,L]");
}

TEST_F(RunModel, NamesWhatIsMissingUnknownOrMisshapen) {
  EXPECT_EQ(refused({{"input_ids", ids()}}),
            "input \"attention_mask\" is missing: expected i32[B,L]");
  EXPECT_EQ(refused({{"input_ids", ids()}, {"attention_mask", ones()}, {"pixels", ones()}}),
            "unknown input of bert for classify \"pixels\"; known: attention_mask, input_ids, "
            "labels, token_type_ids");
  EXPECT_EQ(refused({{"input_ids", ids().reshaped({6})}, {"attention_mask", ones()}}),
            "input \"input_ids\" is [6]: expected i32[B,L]");
  EXPECT_EQ(refused({{"input_ids", ids()}, {"attention_mask", ones().reshaped({3, 2})}}),
            "input \"attention_mask\" is [3,2]: expected i32[B,L], with B = 2 as in \"input_ids\"");
}

TEST_F(RunModel, NamesANumberThatMasksNothing) {
  const Tensor mask = Tensor::from<std::int32_t>({2, 3}, {1, 1, 0, 1, 2, 0});
  EXPECT_EQ(refused({{"input_ids", ids()}, {"attention_mask", mask}}),
            "input \"attention_mask\" holds 2 at index 4: expected 0 or 1, for it masks keys");
}

TEST_F(RunModel, NamesARowOfAnImportedGraphThatKeepsNoKey) {
  const Feed feed{{"input_ids", ids()},
                  {"attention_mask", Tensor::from<std::int32_t>({2, 3}, {1, 0, 0, 0, 0, 0})}};
  EXPECT_EQ(refused(feed), "accepted");
  model_.family = &models::imported_family(true);
  EXPECT_EQ(refused(feed),
            "input \"attention_mask\" hides every key of row 1: expected a 1 in each row");
}

}  // namespace
}  // namespace lathe::train
