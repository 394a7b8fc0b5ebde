#include "lathe/study/storages/time_text.h"

#include <gtest/gtest.h>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

const Time kTime{std::chrono::microseconds(1'700'000'000'000'250)};

TEST(TimeText, WritesSixDigitsBehindThePoint) {
  EXPECT_EQ(to_text(kTime), "2023-11-14 22:13:20.000250");
  EXPECT_EQ(to_text(kTime, 'T'), "2023-11-14T22:13:20.000250");
}

TEST(TimeText, ReadsEveryFormThatOptunaWrites) {
  EXPECT_EQ(parse_time("2023-11-14 22:13:20.000250"), kTime);
  EXPECT_EQ(parse_time("2023-11-14 22:13:20.00025"), kTime);
  EXPECT_EQ(parse_time("2023-11-14T22:13:20.000250"), kTime);
  EXPECT_EQ(parse_time("2023-11-14T22:13:20.000250+00:00"), kTime);
  EXPECT_EQ(parse_time("2023-11-15T01:13:20.000250+03:00"), kTime);
  EXPECT_EQ(parse_time("2023-11-14T22:13:20.000250Z"), kTime);
  EXPECT_EQ(parse_time("2023-11-14 22:13:20"), kTime - std::chrono::microseconds(250));
}

TEST(TimeText, RefusesWhatIsNoTime) {
  for (const char* text : {"", "noon", "2023-11-14", "2023-02-30 00:00:00", "2023-11-14 24:00:00",
                           "2023-11-14 22:13:20 ", "2023-11-14 22:13:20+", "+023-11-14 22:13:20"})
    EXPECT_THROW(parse_time(text), UserError) << text;
}

}  // namespace
}  // namespace lathe::study
