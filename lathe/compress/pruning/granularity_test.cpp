#include "lathe/compress/pruning/granularity.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"

namespace lathe::compress {
namespace {

TEST(Granularity, IsWrittenAsItIsRead) {
  for (const char* const text : {"element", "2:4", "4:8", "1:4", "1x16", "4x4", "row", "column",
                                 "head", "neuron", "vocabulary"})
    EXPECT_EQ(to_text(parse_granularity(text)), text);
}

TEST(Granularity, SaysHowMuchCanGo) {
  EXPECT_EQ(largest_sparsity(parse_granularity("1:4")), 0.75);
  EXPECT_EQ(largest_sparsity(parse_granularity("head")), 1);
}

TEST(Granularity, NamesWhatIsNone) {
  EXPECT_EQ(error_text([] { parse_granularity("4:2"); }),
            "granularity 4:2: expected N:M with 0 < N < M, N of M inputs are kept");
  EXPECT_EQ(error_text([] { parse_granularity("0x4"); }),
            "granularity 0x4: expected ROWSxCOLUMNS, both 1 or more");
  EXPECT_EQ(error_text([] { parse_granularity("neurn"); }),
            "unknown granularity \"neurn\"; known: element, row, column, head, neuron, vocabulary, "
            "2:4, 1x16\nhint: did you mean \"neuron\"?");
}

}  // namespace
}  // namespace lathe::compress
