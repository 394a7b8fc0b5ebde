#include "lathe/search/supernet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/interrupt.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/io/testing/scratch_directory.h"
#include "lathe/search/search_flow.h"
#include "lathe/search/train_candidate.h"

namespace lathe::search {
namespace {

class SupernetTest : public testing::Test {
 protected:
  SupernetTest() {
    options_.data = "reviews:train=120,test=40";
    options_.length = 16;
    options_.supernet = 3;
    options_.out = scratch_.path() / "s";
    space_.layers = {1, 2};
    space_.heads = {2};
    space_.hidden = {8, 16};
    space_.intermediate = {16, 24};
  }

  io::ScratchDirectory scratch_;
  SearchOptions options_;
  ArchitectureSpace space_;
};

TEST_F(SupernetTest, IsAsLargeAsTheLargestAndMadeOnce) {
  const TrialData data(options_, "bert-tiny", {}, {});
  const auto path = scratch_.path() / "supernet";
  const io::Model first = train_supernet(options_, space_, data.base(), path, {}, {});
  EXPECT_EQ(std::get<std::int64_t>(first.config.at("num_hidden_layers")), 2);
  EXPECT_EQ(std::get<std::int64_t>(first.config.at("hidden_size")), 16);
  EXPECT_EQ(std::get<std::int64_t>(first.config.at("intermediate_size")), 24);
  EXPECT_EQ(first.task, "classify");
  const auto written = std::filesystem::last_write_time(path / "model.safetensors");
  train_supernet(options_, space_, data.base(), path, {}, {});
  EXPECT_EQ(std::filesystem::last_write_time(path / "model.safetensors"), written);
  // The same weights whoever makes them.
  const io::Model again =
      train_supernet(options_, space_, data.base(), scratch_.path() / "other", {}, {});
  for (const auto& [name, tensor] : first.state)
    EXPECT_TRUE(identical(again.state.at(name), tensor)) << name;
}

TEST_F(SupernetTest, GivesEveryTrialItsWeights) {
  TrialData data(options_, "bert-tiny", {}, {});
  data.set_parent(
      train_supernet(options_, space_, data.base(), scratch_.path() / "supernet", {}, {}));
  const io::Model small =
      build_candidate(data,
                      {.architecture = {{"num_hidden_layers", std::int64_t{1}},
                                        {"hidden_size", std::int64_t{8}},
                                        {"num_attention_heads", std::int64_t{2}},
                                        {"intermediate_size", std::int64_t{16}}}},
                      0, {});
  const std::string words = "bert.embeddings.word_embeddings.weight";
  const auto cut = small.state.at(words).data<float>();
  const auto whole = data.parent()->state.at(words).data<float>();
  for (std::size_t word = 0; word < 5; ++word)
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(cut[word * 8 + i], whole[word * 16 + i]);
}

TEST_F(SupernetTest, LeavesNothingWhereItIsInterrupted) {
  const TrialData data(options_, "bert-tiny", {}, {});
  int asked = 0;
  const auto path = scratch_.path() / "supernet";
  EXPECT_THROW(train_supernet(options_, space_, data.base(), path, {},
                              {.should_stop = [&] { return ++asked > 8; }}),
               Interrupted);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(SupernetTest, IsNotForModelsThatAreThere) {
  options_.from = "words";
  EXPECT_EQ(error_text([&] { run_search(options_, {}); }),
            "supernet: is made for models that start from nothing, not from words");
}

}  // namespace
}  // namespace lathe::search
