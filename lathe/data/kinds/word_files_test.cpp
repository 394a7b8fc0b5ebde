#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/dataset.h"
#include "lathe/data/match_labels.h"
#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

Dataset load(const TemporaryDirectory& directory, std::string_view split = "train",
             const ColumnOptions& columns = {}) {
  return load_dataset(directory.path().string(), split,
                      {.reads = Reads::Words, .columns = columns});
}

Dataset load(std::string_view name, std::string_view contents, const ColumnOptions& columns = {}) {
  const TemporaryDirectory directory;
  directory.write(name, contents);
  return load(directory, "train", columns);
}

std::string error_of_file(std::string_view name, std::string_view contents,
                          const ColumnOptions& columns = {}) {
  return error_of([&] { load(name, contents, columns); });
}

TEST(WordFiles, ReadWordsBetweenBlankLines) {
  const Dataset dataset = load("train.conll",
                               "-DOCSTART- -X- O O\r\n\r\nAda NNP B-NP B-PER\r\n"
                               "wrote VBD O O\r\n\r\n\r\nLondon  NNP  B-NP  B-LOC\n");
  ASSERT_EQ(dataset.examples.size(), 2u);
  EXPECT_TRUE(dataset.has_words);
  EXPECT_THAT(dataset.label_names, ElementsAre("B-LOC", "B-PER", "O"));
  EXPECT_THAT(dataset.examples[0].words, ElementsAre("Ada", "wrote"));
  EXPECT_THAT(dataset.examples[0].word_labels, ElementsAre(1, 2));
  EXPECT_THAT(dataset.examples[1].words, ElementsAre("London"));
  EXPECT_THAT(dataset.examples[1].word_labels, ElementsAre(0));
}

TEST(WordFiles, ReadTheColumnsAskedFor) {
  const Dataset dataset =
      load("train.txt", "1\tNew York\tLOC\tx\n2\tis\tO\tx\n", {.text = {"2"}, .label = {"3"}});
  EXPECT_THAT(dataset.examples[0].words, ElementsAre("New York", "is"));
  EXPECT_THAT(dataset.label_names, ElementsAre("LOC", "O"));
  EXPECT_THAT(error_of_file("train.conll", "a O\n", {.label = {"3"}}),
              EndsWith("train.conll:1: label-column 3: expected the number of one of the 2 "
                       "columns"));
}

TEST(WordFiles, ReadObjects) {
  for (const char* const keys : {"{\"tokens\":[\"a\",\"b\"],\"ner_tags\":[1,0]}\n",
                                 "{\"words\":[\"a\",\"b\"],\"labels\":[\"1\",\"0\"]}\n"}) {
    const Dataset dataset = load("train.jsonl", keys);
    EXPECT_THAT(dataset.examples[0].words, ElementsAre("a", "b"));
    EXPECT_THAT(dataset.examples[0].word_labels, ElementsAre(1, 0));
  }
}

TEST(WordFiles, NameTheLineOfWhatIsWrong) {
  EXPECT_THAT(error_of_file("train.jsonl", "\n{\"tokens\":[\"a\",\"b\"],\"labels\":[\"O\"]}\n"),
              EndsWith("train.jsonl:2: tokens has 2 words, but labels has 1 labels"));
  EXPECT_THAT(error_of_file("train.jsonl", "{\"tokens\":[\"a\",3],\"labels\":[\"O\",\"O\"]}\n"),
              EndsWith("train.jsonl:1: tokens has 3, expected words"));
  EXPECT_THAT(error_of_file("train.jsonl", "{\"text\":\"a\"}\n"),
              EndsWith("train.jsonl:1: has the keys text: expected a list under tokens, words"));
  EXPECT_THAT(error_of_file("train.conll", "a O\nb\n"),
              EndsWith("train.conll:2: has 1 columns, but the first line has 2"));
  EXPECT_THAT(error_of_file("train.conll", "a\nb\n"),
              EndsWith("train.conll:1: has one column, \"a\": expected a word and its label"));
  EXPECT_THAT(error_of_file("train.conll", "\n\n"),
              EndsWith("train.conll: is empty, expected at least one sentence"));
}

TEST(WordFiles, KnowTheLabelsOfTheTrainingSplitAlone) {
  const TemporaryDirectory directory;
  directory.write("train.conll", "a X\nb Y\n");
  directory.write("test.conll", "a Y\n\nb Z\n");
  EXPECT_THAT(error_of([&] { load(directory, "test"); }),
              EndsWith("test.conll:3: label \"Z\" does not occur in the training split, whose "
                       "labels are X, Y"));
}

TEST(WordFiles, TakeTheModelsNumbersForTheirLabels) {
  const Dataset dataset =
      match_labels(load("train.conll", "a B-PER\nb O\n"), {"O", "B-LOC", "B-PER"});
  EXPECT_THAT(dataset.examples[0].word_labels, ElementsAre(2, 0));
}

}  // namespace
}  // namespace lathe::data
