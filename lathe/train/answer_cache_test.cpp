#include "lathe/train/answer_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "lathe/io/testing/tiny_bert.h"

namespace lathe::train {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AnswerCache : public testing::Test {
 protected:
  AnswerCache() {
    options_.cache = scratch_ / "cache";
    options_.progress = [&](std::int64_t done, std::int64_t) {
      if (done == static_cast<std::int64_t>(examples_.examples.size())) ++runs_;
      return true;
    };
    options_.notice = [&](const std::string& line) { notices_.push_back(line); };
  }
  Tensor answers() { return ask(teacher_, examples_, options_); }
  fs::path only_file() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(options_.cache)) files.push_back(entry.path());
    EXPECT_EQ(files.size(), 1u);
    return files.at(0);
  }

  io::ScratchDirectory scratch_;
  io::Model teacher_ = io::load_model(io::write_tiny_bert(scratch_, "m"));
  data::Dataset examples_{
      .examples = {{"a fine film", 1}, {"a poor plot , not fine", 0}, {"the actors", 1}},
      .label_names = {"bad", "good"}};
  AskOptions options_;
  int runs_ = 0;
  std::vector<std::string> notices_;
};

TEST_F(AnswerCache, AsksATeacherOnce) {
  const Tensor first = answers();
  EXPECT_EQ(first.dims(), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(runs_, 1);
  EXPECT_TRUE(identical(answers(), first));
  EXPECT_EQ(runs_, 1);
  // Opened again, from another place, it is the same teacher; and labels of examples are no part of
  // the question.
  teacher_ = io::load_model(io::write_tiny_bert(scratch_, "copy"));
  examples_.examples[0].label = 0;
  EXPECT_TRUE(identical(answers(), first));
  EXPECT_EQ(runs_, 1);
  options_.cache.clear();
  EXPECT_TRUE(identical(answers(), first));
  EXPECT_EQ(runs_, 2);
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(AnswerCache, AsksAgainWhenAnythingIsDifferent) {
  const auto expect_run = [&](const char* what) {
    const int before = runs_;
    answers();
    EXPECT_EQ(runs_, before + 1) << what;
    answers();
    EXPECT_EQ(runs_, before + 1) << what << ", again";
  };
  expect_run("the first time");
  options_.length = 4;
  expect_run("another length");
  options_.truncation = data::Truncation::HeadTail;
  expect_run("another truncation");
  std::swap(examples_.examples[0], examples_.examples[1]);
  expect_run("another order");
  examples_.examples.pop_back();
  expect_run("fewer examples");
  teacher_.state.at("classifier.bias").mutable_data<float>()[0] += 1;
  expect_run("another weight");
  std::swap(teacher_.label_names[0], teacher_.label_names[1]);
  expect_run("other names of labels");
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(AnswerCache, TakesALengthThatTheTeacherCannotReadForItsMost) {
  options_.length = 16;
  const Tensor most = answers();
  options_.length = 4000;
  EXPECT_TRUE(identical(answers(), most));
  options_.length = 0;
  EXPECT_TRUE(identical(answers(), most));
  EXPECT_EQ(runs_, 1);
}

TEST_F(AnswerCache, NeverUsesADamagedFile) {
  const Tensor first = answers();
  const fs::path path = only_file();
  const std::string whole = scratch_.read("cache/" + path.filename().string());
  const auto damage = [&](const std::string& bytes) {
    scratch_.write("cache/" + path.filename().string(), bytes);
    notices_.clear();
    const int before = runs_;
    EXPECT_TRUE(identical(answers(), first));
    EXPECT_EQ(runs_, before + 1);
    EXPECT_EQ(notices_.size(), 1u);
    EXPECT_EQ(scratch_.read("cache/" + path.filename().string()), whole);  // put right
    return notices_.empty() ? "" : notices_.front();
  };
  std::string flipped = whole;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  EXPECT_EQ(damage(flipped), path.string() + ": is damaged; the teacher is asked again");
  EXPECT_THAT(damage(whole.substr(0, whole.size() / 2)), HasSubstr("the teacher is asked again"));
  EXPECT_THAT(damage(""), HasSubstr("the teacher is asked again"));
}

TEST_F(AnswerCache, NeverUsesAnothersFile) {
  answers();
  const fs::path first = only_file();
  examples_.examples[0].text = "a poor film";
  options_.cache = scratch_ / "other";
  const Tensor expected = answers();
  // A file that was renamed or copied by hand says itself whose it is.
  fs::copy_file(first, only_file(), fs::copy_options::overwrite_existing);
  const int before = runs_;
  EXPECT_TRUE(identical(answers(), expected));
  EXPECT_EQ(runs_, before + 1);
  EXPECT_THAT(notices_, ElementsAre(only_file().string() + ": holds answers to something else; the "
                                                           "teacher is asked again"));
}

TEST_F(AnswerCache, GoesOnWithoutAPlaceToKeepAnswers) {
  scratch_.write("cache", "a file, not a directory");
  EXPECT_EQ(answers().dim(0), 3);
  EXPECT_EQ(runs_, 1);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("the teacher's answers are not kept"));
}

TEST_F(AnswerCache, IsSharedByManyAtOnce) {
  const Tensor expected = answers();
  fs::remove_all(options_.cache);
  options_.progress = {};
  options_.notice = {};
  std::vector<Tensor> got(4);
  std::vector<std::thread> threads;
  for (Tensor& one : got)
    threads.emplace_back([&] {
      for (int i = 0; i < 3; ++i) one = answers();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& one : got) EXPECT_TRUE(identical(one, expected));
  only_file();  // and nothing left beside it
}

TEST_F(AnswerCache, StopsWhenTold) {
  options_.progress = [](std::int64_t, std::int64_t) { return false; };
  EXPECT_THROW(answers(), Interrupted);
  EXPECT_FALSE(fs::exists(options_.cache));
}

}  // namespace
}  // namespace lathe::train
