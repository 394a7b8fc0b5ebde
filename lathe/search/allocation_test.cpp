#include "lathe/search/allocation.h"

#include <gtest/gtest.h>

#include "lathe/io/model.h"
#include "lathe/search/space_file.h"

namespace lathe::search {
namespace {

// Two formats of one bit and one of four; the second does less damage to one layer alone.
class AllocationTest : public testing::Test {
 protected:
  static double damage(const std::string& layer, const std::string& format) {
    if (format == "int:4,channel") return 0;
    return (format == "binary:learned") == (layer == "classifier") ? 1 : 2;
  }

  const SearchSpace space_ = parse_search_space(R"(
[precision.weights]
scaled = "binary:scaled"
learned = "binary:learned"
integer = "int:4,channel"
)",
                                                "space");
  const io::Model model_ = io::load_model("bert-tiny", {.task = "classify", .num_labels = 2});
  const std::vector<std::string> layers_{"bert.pooler.dense", "classifier"};
  const PrecisionCosts costs_{model_.graph};
  const Allocation allocation_{space_, layers_, costs_,
                               [](const std::string& layer, const TensorChoices&,
                                  const std::string& format) { return damage(layer, format); }};
};

TEST_F(AllocationTest, ChoosesAmongTheCheapestAtTheFewestBits) {
  const auto point = allocation_.best(allocation_.smallest());
  ASSERT_TRUE(point);
  const Allocation::Point expected{{"bert.pooler.dense.weights", "scaled"},
                                   {"classifier.weights", "learned"}};
  EXPECT_EQ(*point, expected);
  EXPECT_FALSE(allocation_.best({.weights = *allocation_.smallest().weights - 0.01}));
}

TEST_F(AllocationTest, HasTheLeastDamageWithAllBits) {
  EXPECT_LT(*allocation_.smallest().weights, *allocation_.largest().weights);
  const auto point = allocation_.best({.weights = *allocation_.largest().weights + 0.01});
  ASSERT_TRUE(point);
  for (const auto& [name, value] : *point) EXPECT_EQ(value, study::Choice("integer")) << name;
}

}  // namespace
}  // namespace lathe::search
