#include "lathe/study/option_values.h"

#include <gtest/gtest.h>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

template <typename Read>
std::string message(Read read) {
  try {
    read();
  } catch (const UserError& error) {
    return error.message();
  }
  return "no error";
}

TEST(OptionValues, ReadWhatIsThereAndFallBackOnTheDefault) {
  const Options options = {{"gamma", "0.25"}, {"startup", "30"}, {"group", "yes"}};
  EXPECT_EQ(option_number(options, "gamma", 0.1), 0.25);
  EXPECT_EQ(option_whole(options, "startup", 10), 30);
  EXPECT_TRUE(option_switch(options, "group", false));
  EXPECT_EQ(option_number(options, "prior_weight", 1), 1);
}

TEST(OptionValues, SayWhatWasExpected) {
  const Options options = {{"gamma", "many"}, {"startup", "-1"}, {"group", "maybe"}, {"p", "2"}};
  EXPECT_EQ(message([&] { option_number(options, "gamma", 0.1); }),
            "gamma=many: expected a number");
  EXPECT_EQ(message([&] { option_whole(options, "startup", 10, 0); }),
            "startup=-1: expected a whole number of at least 0");
  EXPECT_EQ(message([&] { option_number(options, "p", 0, 0, 1); }),
            "p=2: expected a number from 0 to 1");
  EXPECT_EQ(message([&] { option_switch(options, "group", false); }),
            "group=maybe: expected true or false");
}

}  // namespace
}  // namespace lathe::study
