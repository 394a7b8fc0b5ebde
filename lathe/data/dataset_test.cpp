#include "lathe/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

Dataset load(std::string_view name, std::string_view contents, std::string_view split = "train") {
  const TemporaryDirectory directory;
  directory.write(name, contents);
  return load_dataset(directory.path().string(), split);
}

std::string error_of_loading(std::string_view name, std::string_view contents,
                             std::string_view split = "train") {
  return error_of([&] { load(name, contents, split); });
}

TEST(Dataset, ReadsTabSeparatedLines) {
  const Dataset dataset = load("train.tsv", "1\ta \"good\"\tone\n0\tbad\u0085still bad\r\n1\t\n");
  EXPECT_THAT(dataset.examples, ElementsAre(Example{"a \"good\"\tone", 1},
                                            Example{"bad\u0085still bad", 0}, Example{"", 1}));
  EXPECT_THAT(dataset.label_names, ElementsAre("0", "1"));
  EXPECT_THAT(dataset.labels(), ElementsAre(1, 0, 1));
}

TEST(Dataset, ReadsCompressedFiles) {
  constexpr std::string_view kText = "0\tfine\n";
  std::string bytes(100, '\0');
  bytes.resize(ZSTD_compress(bytes.data(), bytes.size(), kText.data(), kText.size(), 1));
  EXPECT_THAT(load("test.tsv.zst", bytes, "test").examples, ElementsAre(Example{"fine", 0}));
}

TEST(Dataset, ReadsTextsWithoutLabels) {
  const Dataset dataset = load("unsup.tsv", "one\twith a tab\ntwo\n", "unsup");
  EXPECT_THAT(dataset.examples,
              ElementsAre(Example{"one\twith a tab", kNoLabel}, Example{"two", kNoLabel}));
}

TEST(Dataset, SaysWhichLineOfATsvIsWrong) {
  EXPECT_THAT(error_of_loading("train.tsv", "0\tok\nno tab here\n"),
              EndsWith("train.tsv:2: has no tab, expected label<TAB>text"));
  EXPECT_THAT(
      error_of_loading("train.tsv", "0\tok\nbad\tbad\n"),
      EndsWith("train.tsv:2: label is \"bad\", but the first one is \"0\": expected numbers "
               "alone"));
  EXPECT_THAT(error_of_loading("train.tsv", ""),
              EndsWith("train.tsv: is empty, expected at least one example"));
}

TEST(Dataset, ReadsCsvWithQuotesAndNamedLabels) {
  const Dataset dataset = load("train.csv",
                               "id,Review,Sentiment\r\n"
                               "1,\"a \"\"good\"\" one,\nreally\",positive\r\n"
                               "2,plain,negative\r\n");
  EXPECT_THAT(dataset.examples,
              ElementsAre(Example{"a \"good\" one,\nreally", 1}, Example{"plain", 0}));
  EXPECT_THAT(dataset.label_names, ElementsAre("negative", "positive"));
}

TEST(Dataset, SaysWhichLineOfACsvIsWrong) {
  EXPECT_THAT(
      error_of_loading("train.csv", "a,b\n"),
      EndsWith("train.csv:1: the columns are a, b: expected one named text, review, sentence"));
  EXPECT_THAT(error_of_loading("train.csv", "text,label\n\"a\nb\",0\nc\n"),
              EndsWith("train.csv:4: has 1 fields, but the header has 2"));
  EXPECT_THAT(error_of_loading("train.csv", "text,label\nok,0\n\"open,1\nmore\n"),
              EndsWith("train.csv:3: has a quote that is never closed"));
  EXPECT_THAT(error_of_loading("train.csv", "text,label\n\"a\"b,0\n"),
              EndsWith("train.csv:2: has text after a closing quote, expected a comma"));
  EXPECT_THAT(
      error_of_loading("train.csv", "text,label\na,0\nb,one\n"),
      EndsWith("train.csv:3: label is \"one\", but the first one is \"0\": expected numbers "
               "alone"));
}

TEST(Dataset, ReadsJsonLinesEvenWithAStrayByte) {
  const Dataset dataset =
      load("train.jsonl",
           "{\"text\": \"caf\\u00e9\", \"label\": 1}\n\n{\"label\": 0, \"text\": \"x\xFF\"}\n");
  EXPECT_THAT(dataset.examples, ElementsAre(Example{"café", 1}, Example{"x\uFFFD", 0}));
}

TEST(Dataset, SaysWhichLineOfJsonIsWrong) {
  EXPECT_THAT(error_of_loading("train.jsonl", "{\"text\": \"a\", \"label\": 0}\n{\"text\""),
              EndsWith("train.jsonl:2:8: invalid JSON: unexpected end of input; expected ':'"));
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THAT(error_of_loading("train.jsonl", "{\"text\": \"a\", \"label\": " + deep + "}\n"),
              EndsWith("train.jsonl:1:87: nested more than 64 deep"));
  EXPECT_THAT(error_of_loading("train.jsonl", "{\"text\": \"a\", \"text\": \"b\", \"label\": 0}\n"),
              EndsWith("train.jsonl:1:20: duplicate key \"text\""));
  EXPECT_THAT(error_of_loading("train.jsonl", "[1]\n"),
              EndsWith("train.jsonl:1: is not a JSON object"));
  EXPECT_THAT(error_of_loading("train.jsonl", "{\"label\": 0}\n"),
              EndsWith("train.jsonl:1: the columns are label: expected one named text, review, "
                       "sentence"));
  EXPECT_THAT(error_of_loading("train.jsonl", "{\"text\": \"a\", \"label\": {}}\n"),
              EndsWith("train.jsonl:1: label is {}, expected a text, a number or a list of them"));
  EXPECT_THAT(
      error_of_loading("train.jsonl", "{\"text\": \"a\", \"label\": 0}\n{\"body\": \"b\"}\n"),
      EndsWith("train.jsonl:2: has no text, but the keys body"));
}

TEST(Dataset, NumbersNamedLabelsAlikeInEverySplit) {
  const TemporaryDirectory directory;
  directory.write("train.csv", "text,label\na,bad\nb,good\nc,mixed\n");
  directory.write("test.csv", "text,label\na,mixed\n");
  const Dataset test = load_dataset(directory.path().string(), "test");
  EXPECT_THAT(test.examples, ElementsAre(Example{"a", 2}));
  EXPECT_EQ(test.num_labels(), 3);
  directory.write("test.csv", "text,label\na,great\n");
  EXPECT_THAT(error_of([&] { load_dataset(directory.path().string(), "test"); }),
              EndsWith("test.csv:2: label \"great\" does not occur in the training split, whose "
                       "labels are bad, good, mixed"));
}

TEST(Dataset, ReadsFoldersOfReviewsInTheOrderOfTheirNumbers) {
  const TemporaryDirectory directory;
  directory.write("train/pos/10_8.txt", "ten");
  directory.write("train/pos/9_10.txt", "nine");
  directory.write("train/neg/0_1.txt", "zero");
  directory.write("train/unsup/0_0.txt", "who knows");
  const Dataset train = load_dataset(directory.path().string(), "train");
  EXPECT_THAT(train.examples,
              ElementsAre(Example{"zero", 0}, Example{"nine", 1}, Example{"ten", 1}));
  EXPECT_THAT(train.label_names, ElementsAre("neg", "pos"));
  EXPECT_THAT(load_dataset(directory.path().string(), "unsup").examples,
              ElementsAre(Example{"who knows", kNoLabel}));
}

TEST(Dataset, NumbersLabelsAlikeWhateverClassesASplitHolds) {
  const TemporaryDirectory directory;
  directory.write("train.tsv", "0\ta\n1\tb\n2\tc\n");
  directory.write("test.tsv", "0\ta\n");
  EXPECT_THAT(load_dataset(directory.path().string(), "test").label_names,
              ElementsAre("0", "1", "2"));
  directory.write("test.tsv", "3\ta\n");
  EXPECT_THAT(error_of([&] { load_dataset(directory.path().string(), "test"); }),
              EndsWith("test.tsv:1: label \"3\" does not occur in the training split, whose labels "
                       "are 0, 1, 2"));
}

TEST(Dataset, SaysWhatItLookedFor) {
  const TemporaryDirectory directory;
  EXPECT_THAT(
      error_of([&] { load_dataset(directory.path().string(), "test"); }),
      EndsWith(
          ": has no split \"test\": looked for test.txt; the folders test/neg and "
          "test/pos of .txt files; test.tsv, test.csv, test.jsonl, each also with .zst or .gz"));
  EXPECT_THAT(
      error_of([&] { load_dataset(directory.path().string(), "test", {.reads = Reads::Numbers}); }),
      EndsWith(": has no split \"test\": looked for test.csv, also with .zst or .gz; "
               "test-images-idx3-ubyte and test-labels-idx1-ubyte (t10k for test), each also with "
               ".zst or .gz; folders test/LABEL of .png or .jpg files"));
  EXPECT_EQ(error_of([] { load_dataset("/no/such/place", "train"); }),
            "/no/such/place: no such dataset: expected \"reviews\", a directory or a table");
  EXPECT_EQ(error_of([] { load_dataset("reviews", "tset"); }),
            "unknown split \"tset\"; known: train, test, validation, unsup");
  EXPECT_EQ(error_of([] { load_dataset("reviews", "unsup"); }),
            "unknown split of reviews \"unsup\"; known: train, test, validation");
}

TEST(Dataset, TakesOneTableForTheTrainingSplitAndNothingElse) {
  const TemporaryDirectory directory;
  directory.write("stars.2024.csv", "text,label\na,1\nb,2\n");
  directory.write("notes.md", "a");
  directory.write("rows.parquet", "PAR1");
  const std::string table = (directory.path() / "stars.2024.csv").string();
  EXPECT_EQ(load_dataset(table, "train").examples.size(), 2);
  EXPECT_TRUE(has_split(table, "train"));
  EXPECT_FALSE(has_split(table, "test"));
  EXPECT_THAT(error_of([&] { load_dataset(table, "test"); }),
              EndsWith("is one file and has the split \"train\" alone, not \"test\""));
  EXPECT_THAT(error_of([&] { load_dataset((directory.path() / "notes.md").string(), "train"); }),
              EndsWith("notes.md: is no table of texts: expected .csv, .tsv, .jsonl or .txt, also "
                       "with .zst or .gz, or a directory"));
  EXPECT_THAT(
      error_of([&] { load_dataset((directory.path() / "rows.parquet").string(), "train"); }),
      EndsWith("rows.parquet: is a Parquet file, which is not read"));
}

TEST(Dataset, SaysWhenTheDataIsNotWhatTheModelReads) {
  const TemporaryDirectory directory;
  directory.write("train.tsv", "0\ta\n");
  EXPECT_THAT(error_of([&] {
                load_dataset(directory.path().string(), "train", {.reads = Reads::Numbers});
              }),
              testing::HasSubstr(": split \"train\" holds texts (text-tables), but numbers are "
                                 "needed: looked for train.csv"));
  EXPECT_EQ(error_of([] { load_dataset("reviews", "train", {.reads = Reads::Numbers}); }),
            "reviews: holds texts, but numbers are needed");
}

TEST(Dataset, RefusesToGuessBetweenTwoKinds) {
  const TemporaryDirectory directory;
  directory.write("train.tsv", "0\ta\n");
  directory.write("train/pos/0_8.txt", "b");
  EXPECT_THAT(error_of([&] { load_dataset(directory.path().string(), "train"); }),
              EndsWith(": holds split \"train\" twice, as review-folders and as text-tables: "
                       "expected one of them"));
}

TEST(Dataset, KnowsItsSplits) {
  const TemporaryDirectory directory;
  directory.write("train.csv", "x,label\n1,0\n");
  const std::string place = directory.path().string();
  EXPECT_TRUE(has_split(place, "train"));
  EXPECT_TRUE(has_split(place, "train", {.reads = Reads::Numbers}));
  EXPECT_FALSE(has_split(place, "test"));
  EXPECT_TRUE(has_split("reviews:train=4", "test"));
  EXPECT_FALSE(has_split("reviews", "unsup"));
  EXPECT_FALSE(has_split("reviews", "test", {.reads = Reads::Numbers}));
  EXPECT_FALSE(has_split("/no/such/place", "train"));
}

TEST(Dataset, LoadsTheBuiltInReviewsByName) {
  const Dataset dataset = load_dataset("reviews:train=12,seed=3", "train");
  EXPECT_EQ(dataset.examples.size(), 12u);
  EXPECT_THAT(dataset.label_names, ElementsAre("negative", "positive"));
}

TEST(Dataset, ReadsImdbWithItsOfficialSize) {
  const std::string imdb = std::string(LATHE_SHARED_DIR) + "/data/imdb";
  if (!std::filesystem::exists(imdb)) GTEST_SKIP() << "needs " << imdb;
  const Dataset test = load_dataset(imdb, "test");
  ASSERT_EQ(test.examples.size(), 25'000u);
  std::size_t num_bytes = 0, num_positive = 0;
  for (const Example& example : test.examples) {
    num_bytes += example.text.size();
    num_positive += example.label == 1;
  }
  EXPECT_EQ(num_bytes, 32'350'685u);
  EXPECT_EQ(num_positive, 12'500u);
}

}  // namespace
}  // namespace lathe::data
