#include "lathe/data/reviews.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lathe/data/review_grammar.h"
#include "lathe/data/testing/temporary_directory.h"
#include "lathe/data/wordpiece_tokenizer.h"

namespace lathe::data {
namespace {

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ' || c == '.' || c == ',') {
      if (!words.back().empty()) words.emplace_back();
      if (c != ' ') words.back() = c, words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  words.pop_back();
  return words;
}

// The judgements of an attentive reader: one of +1 and -1 for each sentence that has one.
std::set<int> judgements(std::string_view text) {
  static const std::set<std::string> not_the_reviewer = {"trailer", "book", "another", "critics"};
  std::set<int> all;
  std::vector<std::string> sentence;
  for (const std::string& word : words_of(text)) {
    if (word != ".") {
      sentence.push_back(word);
      continue;
    }
    int polarity = 0;
    int sign = 1;
    bool counts = true;
    for (const std::string& part : sentence) {
      // What comes before "but", or before the comma after "although", is taken back.
      if (part == "but" || (part == "," && sentence.front() == "although")) polarity = 0, sign = 1;
      if (part == "not" || part == "never" || part == "hardly" || part == "nothing") sign = -1;
      if (contains(review_grammar::positive_adjectives(), part)) polarity = sign;
      if (contains(review_grammar::negative_adjectives(), part)) polarity = -sign;
      if (not_the_reviewer.contains(part)) counts = false;
      if (contains(review_grammar::slot_words("<said>"), part)) counts = false;
    }
    if (counts && polarity != 0) all.insert(polarity);
    sentence.clear();
  }
  return all;
}

TEST(Reviews, HaveTheLabelThatAnAttentiveReaderGives) {
  EXPECT_THAT(judgements("the plot was not dull. my friend said it was awful."),
              testing::ElementsAre(1));
  EXPECT_THAT(judgements("although the cast was good, the plot was dull. it runs for two hours."),
              testing::ElementsAre(-1));
  for (const Example& example : make_reviews({}, "test").examples)
    ASSERT_THAT(judgements(example.text), testing::ElementsAre(example.label == 1 ? 1 : -1))
        << example.text;
}

TEST(Reviews, AreBalancedAndOfModerateLength) {
  const Dataset train = make_reviews({}, "train");
  ASSERT_EQ(train.examples.size(), 24000u);
  std::size_t num_positive = 0, shortest = 1000, longest = 0;
  for (const Example& example : train.examples) {
    num_positive += example.label == 1;
    const std::size_t length = words_of(example.text).size();
    shortest = std::min(shortest, length);
    longest = std::max(longest, length);
  }
  EXPECT_EQ(num_positive, 12000u);
  EXPECT_GE(shortest, 8u);
  EXPECT_LE(longest, 78u);
  EXPECT_GT(longest, 50u);
}

TEST(Reviews, AreTheSameOnEveryMachine) {
  EXPECT_EQ(
      make_reviews({.num_train = 1, .seed = 1}, "train").examples[0].text,
      "i saw it on sunday with my father. it follows two people who meet at a cinema. i think the "
      "ending is flat and the dialogue is painful.");
  const Dataset few = make_reviews({.num_train = 10}, "train");
  Dataset many = make_reviews({.num_train = 20}, "train");
  many.examples.resize(10);
  EXPECT_EQ(few, many) << "a smaller dataset is the beginning of a larger one";
  EXPECT_NE(few, make_reviews({.num_train = 10, .seed = 2}, "train"));
  EXPECT_NE(few.examples[0], make_reviews({}, "test").examples[0]);
}

TEST(Reviews, AreNoLongerMadeWhenNobodyWantsThem) {
  int looks = 0;
  EXPECT_THROW(make_reviews({.num_train = 10'000'000}, "train", [&] { return ++looks == 3; }),
               Interrupted);
  EXPECT_EQ(looks, 3);
}

TEST(Reviews, UseTheirWholeVocabularyAndNoOtherWord) {
  const std::vector<std::string> vocabulary = reviews_vocabulary();
  const auto tokenizer = WordpieceTokenizer::from_vocabulary(vocabulary);
  EXPECT_THAT(vocabulary.size(), testing::AllOf(testing::Gt(200u), testing::Lt(300u)));
  std::set<std::int32_t> used;
  for (const Example& example : make_reviews({}, "train").examples) {
    const auto ids = tokenizer.encode(example.text);
    ASSERT_EQ(ids.size(), words_of(example.text).size() + 2) << "one token a word";
    used.insert(ids.begin(), ids.end());
  }
  EXPECT_FALSE(used.contains(tokenizer.unknown_id()));
  EXPECT_EQ(used.size(), vocabulary.size() - 3) << "all but [PAD], [UNK] and [MASK]";
}

// Logistic regression on which words occur, trained by plain gradient descent one review at a time.
double bag_of_words_accuracy(const Dataset& train, const Dataset& test) {
  std::map<std::string, double> weights;
  double bias = 0;
  const auto score = [&](const std::set<std::string>& words) {
    double sum = bias;
    for (const std::string& word : words) sum += weights[word];
    return sum;
  };
  const auto bag = [](const Example& example) {
    const auto words = words_of(example.text);
    return std::set<std::string>(words.begin(), words.end());
  };
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (const Example& example : train.examples) {
      const std::set<std::string> words = bag(example);
      const double step = 0.05 / (1 + epoch) * (example.label - 1 / (1 + std::exp(-score(words))));
      bias += step;
      for (const std::string& word : words) weights[word] += step;
    }
  }
  int num_right = 0;
  for (const Example& example : test.examples)
    num_right += (score(bag(example)) > 0) == (example.label == 1);
  return num_right / static_cast<double>(test.examples.size());
}

TEST(Reviews, CannotBeJudgedByTheirWordsAlone) {
  const double accuracy =
      bag_of_words_accuracy(make_reviews({}, "train"), make_reviews({}, "test"));
  RecordProperty("bag_of_words_accuracy", std::to_string(accuracy));
  EXPECT_GT(accuracy, 0.60);
  EXPECT_LT(accuracy, 0.75);
}

TEST(Reviews, ReadTheirOptions) {
  EXPECT_EQ(parse_review_options("reviews"), ReviewOptions{});
  EXPECT_EQ(parse_review_options("reviews:train=4000,test=1000,validation=5,seed=7"),
            (ReviewOptions{.num_train = 4000, .num_test = 1000, .num_validation = 5, .seed = 7}));
  EXPECT_EQ(error_of([] { parse_review_options("reviews:trian=4"); }),
            "reviews:trian=4: unknown option \"trian\"; known: seed, test, train, validation");
  EXPECT_EQ(error_of([] { parse_review_options("reviews:train=0"); }),
            "reviews:train=0: train is \"0\", expected a number from 1 to 10000000");
  EXPECT_EQ(error_of([] { parse_review_options("reviews:train"); }),
            "reviews:train: option \"train\" has no value, expected NAME=NUMBER");
}

}  // namespace
}  // namespace lathe::data
