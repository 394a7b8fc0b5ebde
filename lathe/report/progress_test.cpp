#include "lathe/report/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/report/markup.h"

namespace lathe::report {
namespace {

using testing::HasSubstr;

// A stream that keeps what is written, and a clock that moves when told to.
class Screen {
 public:
  Screen() : stream_(open_memstream(&data_, &size_)) {}
  ~Screen() {
    std::fclose(stream_);
    std::free(data_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  ProgressOptions terminal(int width = 80) {
    return {
        .label = "train", .unit = "steps", .is_terminal = true, .width = width, .seconds = [this] {
          return now;
        }};
  }
  ProgressOptions file() {
    return {
        .label = "train", .unit = "steps", .is_terminal = false, .seconds = [this] { return now; }};
  }
  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    return {data_, size_};
  }
  double now = 100;

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

TEST(Progress, DrawsABarWithRateAndTimeLeft) {
  Screen screen;
  Progress progress(screen.stream(), screen.terminal(100));
  screen.now = 110;
  progress.update(50, 200, "loss 0.5");
  EXPECT_EQ(
      screen.text(),
      "\rtrain  25% [=======>                      ] 50/200  5 steps/s  0:30 left  loss 0.5\x1b[K");
}

TEST(Progress, CountsNothingThatWasDoneBefore) {
  Screen screen;
  ProgressOptions options = screen.terminal(100);
  options.done_before = 150;
  Progress progress(screen.stream(), options);
  progress.update(150, 200);
  screen.now += 10;
  progress.update(170, 200);
  EXPECT_THAT(screen.text(), testing::HasSubstr("150/200  0:00"));
  EXPECT_THAT(screen.text(), testing::HasSubstr("170/200  2 steps/s  0:15 left"));
}

TEST(Progress, RedrawsAtMostTenTimesASecond) {
  Screen screen;
  Progress progress(screen.stream(), screen.terminal());
  for (int i = 1; i <= 1000; ++i) {
    screen.now = 100 + i * 0.001;
    progress.update(i, 1000);
  }
  const std::string text = screen.text();
  const auto redraws = std::count(text.begin(), text.end(), '\r');
  EXPECT_GE(redraws, 9);
  EXPECT_LE(redraws, 11);
}

TEST(Progress, ShowsTheLastStateWhenFinished) {
  Screen screen;
  Progress progress(screen.stream(), screen.terminal());
  progress.update(1, 200);
  screen.now += 0.01;
  progress.update(200, 200, "done");
  progress.finish();
  progress.finish();
  progress.update(3, 200);
  EXPECT_THAT(screen.text(), HasSubstr("100% "));
  EXPECT_TRUE(screen.text().ends_with("done\x1b[K\n"));
}

TEST(Progress, NeverExceedsTheWidthOfTheTerminal) {
  for (const int width : {12, 20, 40, 60, 100}) {
    Screen screen;
    Progress progress(screen.stream(), screen.terminal(width));
    screen.now += 10;
    progress.update(12345, 67890, "a rather long suffix, longer than a narrow window");
    std::string text = screen.text();
    text = text.substr(1, text.size() - 4);
    EXPECT_LT(num_characters(text), static_cast<std::size_t>(width)) << text;
  }
}

TEST(Progress, WritesPlainLinesEveryTenSecondsElsewhere) {
  Screen screen;
  Progress progress(screen.stream(), screen.file());
  for (int i = 1; i <= 25; ++i) {
    screen.now = 100 + i;
    progress.update(i, 100);
  }
  progress.finish();
  EXPECT_EQ(screen.text(),
            "train 10/100  1 steps/s  1:30 left\n"
            "train 20/100  1 steps/s  1:20 left\n"
            "train 25/100  1 steps/s  0:25\n");
}

TEST(Progress, CountsWithoutATotal) {
  Screen screen;
  Progress progress(screen.stream(), screen.file());
  screen.now += 10;
  progress.update(30, 0);
  EXPECT_EQ(screen.text(), "train 30  3 steps/s  0:10\n");
}

TEST(Progress, IsSilentWhenDisabled) {
  Screen screen;
  {
    ProgressOptions options = screen.terminal();
    options.is_enabled = false;
    Progress progress(screen.stream(), options);
    screen.now += 60;
    progress.update(1, 2);
    progress.finish();
  }
  EXPECT_EQ(screen.text(), "");
}

TEST(Progress, EndsItsLineWhenWorkIsCutShort) {
  Screen screen;
  {
    Progress progress(screen.stream(), screen.terminal());
    progress.update(1, 2);
  }
  EXPECT_TRUE(screen.text().ends_with("\n"));
}

TEST(Progress, CannotBeMadeToSendControlSequences) {
  Screen screen;
  Progress progress(screen.stream(), screen.terminal());
  progress.update(1, 2, "x\x1b[2J\ny");
  EXPECT_THAT(screen.text(), testing::Not(HasSubstr("\x1b[2J")));
}

TEST(DurationText, ReadsLikeAClock) {
  EXPECT_EQ(duration_text(5), "0:05");
  EXPECT_EQ(duration_text(65), "1:05");
  EXPECT_EQ(duration_text(7384), "2:03:04");
  EXPECT_EQ(duration_text(-1), "?");
}

}  // namespace
}  // namespace lathe::report
