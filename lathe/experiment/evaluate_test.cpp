#include "lathe/experiment/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/experiment/testing/opinions.h"

namespace lathe::experiment {
namespace {

class EvaluateEnsemble : public testing::Test {
 protected:
  // A model whose classifier, and so whose opinion, is another for each name.
  io::Model member(const std::string& name, std::string_view config = io::kTinyConfig) {
    State weights = io::tiny_weights();
    float sign = 1;
    for (float& value : weights.at("classifier.weight").mutable_data<float>())
      value *= sign += static_cast<float>(name.back() % 7);
    return io::load_model(io::write_tiny_bert(scratch_, name, weights, config));
  }

  io::ScratchDirectory scratch_;
  EvaluateOptions options_{.data = write_opinions(scratch_, "data")};
};

TEST(EvaluateExamples, RefusesToPadForALanguageModel) {
  const io::Model model = io::load_model("bert-tiny", {.task = "mlm"});
  EXPECT_EQ(error_text([&] { evaluate_examples(model, {}, {.is_padded = true}, {}, {}); }),
            "padded: a model for mlm is measured on packed sequences; expected a classifier");
}

TEST_F(EvaluateEnsemble, OfOneIsTheModelItself) {
  const std::vector<io::Model> one{member("a")};
  const train::Evaluation alone = *evaluate_on(one[0], options_, {}).classes;
  const EnsembleEvaluation result = evaluate_ensemble(one, options_, {});
  ASSERT_EQ(result.members.size(), 1u);
  EXPECT_EQ(result.members[0].loss, alone.loss);
  EXPECT_EQ(result.together.accuracy, alone.accuracy);
  EXPECT_EQ(result.together.confusion, alone.confusion);
  EXPECT_EQ(result.together.tokens, alone.tokens);
  // Its logits less the logarithm of their sum, rounded to float: half a unit of at most 2^-16 for
  // numbers below 256, in each of two logits.
  EXPECT_NEAR(result.together.loss, alone.loss, 0x1p-16);
}

TEST_F(EvaluateEnsemble, KnowsMembersByTheNamesOfTheirLabels) {
  const std::vector<io::Model> two{member("a"), member("b")};
  const EnsembleEvaluation expected = evaluate_ensemble(two, options_, {});
  EXPECT_NE(expected.members[0].loss, expected.members[1].loss);
  EXPECT_EQ(expected.together.tokens, 2 * expected.members[0].tokens);

  // The second with its labels the other way round: the same opinions.
  std::string swapped(io::kTinyConfig);
  const std::string names = R"("0": "bad", "1": "good")";
  swapped.replace(swapped.find(names), names.size(), R"("0": "good", "1": "bad")");
  State weights = two[1].state;
  for (const char* name : {"classifier.weight", "classifier.bias"}) {
    const std::span<float> rows = weights.at(name).mutable_data<float>();
    std::rotate(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2),
                rows.end());
  }
  const std::vector<io::Model> other{
      two[0], io::load_model(io::write_tiny_bert(scratch_, "c", weights, swapped))};
  ASSERT_THAT(other[1].label_names, testing::ElementsAre("good", "bad"));
  EXPECT_EQ(evaluate_ensemble(other, options_, {}).together.loss, expected.together.loss);
}

TEST_F(EvaluateEnsemble, NamesAMemberThatKnowsOtherLabels) {
  std::string other(io::kTinyConfig);
  other.replace(other.find("good"), 4, "fine");
  const std::vector<io::Model> two{member("a"), member("b", other)};
  EXPECT_EQ(error_text([&] { evaluate_ensemble(two, options_, {}); }),
            two[1].directory.string() + ": has the labels bad, fine: expected bad, good");
}

TEST(EvaluateOn, RefusesWhatIsForTextsOfAModelOfNumbers) {
  const io::Model model = io::load_model("mlp:4,3");
  const auto refusal_of = [&](const EvaluateOptions& options) {
    return error_text([&] { evaluate_on(model, options, {}); });
  };
  EXPECT_EQ(refusal_of({.data = "nowhere", .length = 8}),
            "length: is for texts, which a mlp model does not read");
  EXPECT_EQ(refusal_of({.data = "nowhere", .truncation = data::Truncation::HeadTail}),
            "truncation: is for texts, which a mlp model does not read");
  EXPECT_EQ(refusal_of({.data = "nowhere", .is_padded = true}),
            "padded: is for texts, which a mlp model does not read");
}

}  // namespace
}  // namespace lathe::experiment
