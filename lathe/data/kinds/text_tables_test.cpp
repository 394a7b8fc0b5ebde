#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/dataset.h"
#include "lathe/data/testing/temporary_directory.h"
#include "lathe/data/validation_split.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

Dataset load(std::string_view name, std::string_view contents, const ColumnOptions& columns = {},
             std::optional<LabelKind> labels = {}) {
  const TemporaryDirectory directory;
  directory.write(name, contents);
  return load_dataset(directory.path().string(), "train", {.columns = columns, .labels = labels});
}

TEST(TextTables, ReadTheColumnsAskedFor) {
  for (const auto& [name, contents] : {
           std::pair("train.csv", "id,body,stars\n1,fine,5\n2,dull,1\n"),
           std::pair("train.tsv", "id\tbody\tstars\n1\tfine\t5\n2\tdull\t1\n"),
           std::pair("train.jsonl",
                     "{\"id\":1,\"body\":\"fine\",\"stars\":5}\n"
                     "{\"stars\":1,\"body\":\"dull\",\"id\":2}\n"),
       }) {
    const Dataset dataset = load(name, contents, {.text = {"body"}, .label = {"stars"}});
    EXPECT_THAT(dataset.examples, ElementsAre(Example{"fine", 1}, Example{"dull", 0})) << name;
    EXPECT_THAT(dataset.label_names, ElementsAre("1", "5")) << name;
  }
}

TEST(TextTables, ListTheColumnsFoundOtherwise) {
  EXPECT_THAT(error_of([] { load("train.csv", "id,body\n1,a\n", {.text = {"bodies"}}); }),
              EndsWith("train.csv:1: text-column bodies: the columns are id, body"));
  EXPECT_THAT(error_of([] { load("train.csv", "text,mark\na,b\n"); }),
              EndsWith("train.csv:1: the columns are text, mark: expected one named label, "
                       "sentiment, labels, class, target, category, score, rating, stars"));
}

TEST(TextTables, PreferTheColumnsThatAModelKnows) {
  const std::string csv = "text,body,label\na,b,0\nc,d,1\n";
  EXPECT_EQ(load("train.csv", csv, {.known_text = {"body"}}).examples[0].text, "b");
  EXPECT_EQ(load("train.csv", csv, {.known_text = {"prose"}}).examples[0].text, "a");
}

TEST(TextTables, ReadPairsOfTexts) {
  const Dataset asked = load("train.csv", "q,a,label\nwhy,so,1\nhow,,0\n", {.text = {"q", "a"}});
  EXPECT_TRUE(asked.has_pairs);
  EXPECT_THAT(asked.examples, ElementsAre(Example{"why", 1, "so"}, Example{"how", 0, ""}));
  const Dataset usual = load("train.tsv", "premise\thypothesis\tlabel\na\tb\tyes\nc\td\tno\n");
  EXPECT_THAT(usual.examples, ElementsAre(Example{"a", 1, "b"}, Example{"c", 0, "d"}));
  EXPECT_FALSE(load("train.tsv", "1\ta\n0\tb\n").has_pairs);
}

TEST(TextTables, RecognizeAHeaderOrAreTold) {
  EXPECT_EQ(load("train.tsv", "text\tlabel\ta\nfine\t1\tx\n").examples[0].text, "fine");
  EXPECT_EQ(load("train.tsv", "good\tfine\nbad\tdull\n").examples.size(), 2u);
  const Dataset told = load("train.tsv", "x\t1\tlabel\tfine\ny\t0\ttext\tdull\n",
                            {.text = {"4"}, .label = {"2"}, .header = Header::No});
  EXPECT_THAT(told.examples, ElementsAre(Example{"fine", 1}, Example{"dull", 0}));
  EXPECT_THAT(
      load("train.csv", "fine,1\ndull,0\n", {.text = {"1"}, .label = {"2"}, .header = Header::No})
          .examples,
      ElementsAre(Example{"fine", 1}, Example{"dull", 0}));
  EXPECT_THAT(error_of([] { load("train.tsv", "text\tlabel\nfine\t1\ndull\n"); }),
              EndsWith("train.tsv:3: has 1 fields between tabs, but the first line has 2"));
}

TEST(TextTables, KnowColumnsByTheirNumbers) {
  EXPECT_THAT(load("train.tsv", "x\t1\tfine\ny\t0\tdull\n",
                   {.known_text = {"3"}, .known_label = {"2"}, .header = Header::No})
                  .examples,
              ElementsAre(Example{"fine", 1}, Example{"dull", 0}));
  EXPECT_THAT(load("train.tsv", "1\tfine\n0\tdull\n", {.known_text = {"body"}}).examples,
              ElementsAre(Example{"fine", 1}, Example{"dull", 0}));
}

TEST(TextTables, PassOverAByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_THAT(load("train.tsv", mark + "1\ta\n0\tb\n").labels(), ElementsAre(1, 0));
  EXPECT_THAT(load("train.csv", mark + "text,label\na,1\nb,0\n").labels(), ElementsAre(1, 0));
  EXPECT_THAT(load("train.jsonl", mark + "{\"text\":\"a\",\"label\":\"x\"}\n").labels(),
              ElementsAre(0));
}

TEST(TextTables, ReadNumbersAndSetsOfLabels) {
  EXPECT_THAT(load("train.tsv", "0.5\ta\n2\tb\n").targets, ElementsAre(0.5f, 2));
  const Dataset lists = load("train.jsonl",
                             "{\"text\":\"a\",\"labels\":[\"red\",\"big\"]}\n"
                             "{\"text\":\"b\",\"labels\":[]}\n");
  EXPECT_EQ(lists.label_kind, LabelKind::Set);
  EXPECT_THAT(lists.label_names, ElementsAre("big", "red"));
  EXPECT_THAT(lists.targets, ElementsAre(1, 1, 0, 0));
  const Dataset columns =
      load("train.csv", "text,red,big\na,1,0\nb,true,1\n", {.label = {"red", "big"}});
  EXPECT_THAT(columns.label_names, ElementsAre("red", "big"));
  EXPECT_THAT(columns.targets, ElementsAre(1, 0, 1, 1));
  const Dataset joined =
      load("train.csv", "text,label\na,red; big\nb,big\n", {.separator = ";"}, LabelKind::Set);
  EXPECT_THAT(joined.targets, ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(error_of([] {
                load("train.csv", "text,red,big\na,1,x\n", {.label = {"red", "big"}});
              }),
              HasSubstr("train.csv:2: column big is \"x\", expected 1 or 0"));
}

TEST(TextTables, CallValidationByAnyOfItsNames) {
  for (const std::string name : {"validation", "valid", "val", "dev"}) {
    const TemporaryDirectory directory;
    directory.write("train.tsv", "1\ta\n0\tb\n");
    directory.write(name + ".tsv", "1\tc\n");
    EXPECT_TRUE(has_split(directory.path().string(), "validation")) << name;
    EXPECT_EQ(load_dataset(directory.path().string(), "validation").examples[0].text, "c");
  }
  const TemporaryDirectory both;
  both.write("dev.tsv", "1\ta\n");
  both.write("valid.tsv", "1\ta\n");
  EXPECT_THAT(error_of([&] { load_dataset(both.path().string(), "validation"); }),
              EndsWith(": holds valid.tsv and dev.tsv: expected one validation split"));
}

TEST(TextTables, SayHowToConvertParquet) {
  const TemporaryDirectory directory;
  directory.write("train-00000-of-00001.parquet", "PAR1");
  try {
    load_dataset(directory.path().string(), "train");
    FAIL() << "a Parquet file was read";
  } catch (const UserError& error) {
    EXPECT_THAT(error.message(), EndsWith("parquet: is a Parquet file, which is not read"));
    EXPECT_THAT(error.hint(), HasSubstr("pandas.read_parquet("));
  }
}

TEST(TextTables, KnowAColumnWhoseNameHoldsAComma) {
  const TemporaryDirectory directory;
  directory.write("train.csv", "\"question, asked\",answer,label\nwhy,so,a\nhow,thus,b\n");
  const DatasetOptions options{.columns = {.text = {"question", " asked"}}};
  const Dataset dataset = load_dataset(directory.path().string(), "train", options);
  EXPECT_FALSE(dataset.has_pairs);
  EXPECT_EQ(dataset.examples[0].text, "why");
}

// A table of more bytes than may be kept: the rest lies in a file, and nobody sees a difference.
TEST(TextTables, KeepTextsThatAreTooManyInAFile) {
  std::string csv = "first,second,label\n";
  for (int i = 0; i < 200; ++i) csv += fmt::format("text {},other {},{}\n", i, i * i, i % 2);
  const TemporaryDirectory directory;
  directory.write("train.csv", csv);
  DatasetOptions options{.columns = {.text = {"first", "second"}}};
  const Dataset whole = load_dataset(directory.path().string(), "train", options);
  options.most_bytes = 500;
  const Dataset spilled = load_dataset(directory.path().string(), "train", options);
  ASSERT_NE(spilled.store, nullptr);
  EXPECT_EQ(spilled.examples[0].text, "text 0");
  EXPECT_EQ(spilled.examples[199].text, "");
  const std::vector<std::int64_t> chosen = {3, 150, 199};
  const Dataset some = select(spilled, chosen);
  TextStore::Texts buffer;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Example& expected = whole.examples[static_cast<std::size_t>(chosen[i])];
    const Dataset::Texts texts = some.texts(i, buffer);
    EXPECT_EQ(texts.text, expected.text);
    EXPECT_EQ(texts.second, expected.second);
    EXPECT_EQ(some.examples[i].label, expected.label);
  }
}

}  // namespace
}  // namespace lathe::data
