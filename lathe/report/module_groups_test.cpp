#include "lathe/report/module_groups.h"

#include <gtest/gtest.h>

#include <string>

namespace lathe::report {
namespace {

// "title[member member inner[...]]"
std::string print(const ModuleGroup& group, const std::vector<std::string>& names) {
  std::string text = group.title + "[";
  for (const std::size_t index : group.members)
    text += (text.ends_with('[') ? "" : " ") + std::string(group.short_name(names[index]));
  for (const ModuleGroup& inner : group.groups)
    text += (text.ends_with('[') ? "" : " ") + print(inner, names);
  return text + "]";
}

std::string grouped(const std::vector<std::string>& names, int depth = 2) {
  return print(group_by_module(names, depth), names);
}

TEST(GroupByModule, PutsNamesOfOnePathTogether) {
  EXPECT_EQ(grouped({"x", "head.dense", "head.activation", "y"}), "[x y head[dense activation]]");
}

TEST(GroupByModule, MakesNoGroupForOneName) {
  EXPECT_EQ(grouped({"x", "head.dense"}), "[x head.dense]");
}

TEST(GroupByModule, GroupsNumberedLayersAndNotWhatLeadsToThem) {
  EXPECT_EQ(grouped({"bert.embeddings.word", "bert.embeddings.norm",
                     "bert.encoder.layer.0.attention.self.query",
                     "bert.encoder.layer.0.attention.output.dense",
                     "bert.encoder.layer.0.output.dense", "bert.encoder.layer.0.output.norm",
                     "bert.encoder.layer.1.dense", "bert.encoder.layer.1.norm"}),
            "[bert.embeddings[word norm] "
            "bert.encoder.layer.0[attention[self.query output.dense] output[dense norm]] "
            "bert.encoder.layer.1[dense norm]]");
}

TEST(GroupByModule, JoinsAPathThatOnlyLeadsToOneGroup) {
  EXPECT_EQ(grouped({"cls.predictions.dense", "cls.predictions.norm", "x"}),
            "[x cls.predictions[dense norm]]");
}

TEST(GroupByModule, DoesNotNestDeeperThanAsked) {
  const std::vector<std::string> names = {"a.b.c.x", "a.b.c.y", "a.b.z", "a.w"};
  EXPECT_EQ(grouped(names, 0), "[a.b.c.x a.b.c.y a.b.z a.w]");
  EXPECT_EQ(grouped(names, 1), "[a[b.c.x b.c.y b.z w]]");
  EXPECT_EQ(grouped(names, 3), "[a[w b[z c[x y]]]]");
}

TEST(GroupByModule, PutsANameThatIsAlsoAPathWithWhatIsBelowIt) {
  EXPECT_EQ(grouped({"loss/cross_entropy", "loss"}), "[loss[cross_entropy loss]]");
}

TEST(GroupByModule, SurvivesNamesOfNothingButSeparators) {
  EXPECT_EQ(grouped({"", ".", "..", "/a", "a."}), "[. .. /a a.]");
  const std::string dots(100000, '.');
  EXPECT_EQ(group_by_module(std::vector<std::string>{dots + "a", dots + "b"}, 2).members.size(),
            2u);
}

}  // namespace
}  // namespace lathe::report
