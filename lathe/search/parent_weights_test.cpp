#include "lathe/search/parent_weights.h"

#include <gtest/gtest.h>

namespace lathe::search {
namespace {

io::Model model_of(std::int64_t layers, std::int64_t hidden, std::uint64_t seed) {
  return io::load_model("bert-tiny", {.task = "classify",
                                      .num_labels = 2,
                                      .config = {{"num_hidden_layers", layers},
                                                 {"hidden_size", hidden},
                                                 {"num_attention_heads", std::int64_t{2}},
                                                 {"intermediate_size", 2 * hidden},
                                                 {"vocab_size", std::int64_t{50}}},
                                      .seed = seed});
}

float at(const io::Model& model, const std::string& name, std::int64_t row, std::int64_t column) {
  const Tensor& tensor = model.state.at(name);
  return tensor.data<float>()[static_cast<std::size_t>(row * tensor.dim(1) + column)];
}

constexpr const char* kQuery = "bert.encoder.layer.0.attention.self.query.weight";
constexpr const char* kLater = "bert.encoder.layer.2.attention.self.query.weight";

TEST(ParentWeights, AreAllOfAModelOfTheSameSizes) {
  io::Model model = model_of(2, 8, 1);
  const io::Model parent = model_of(2, 8, 2);
  EXPECT_EQ(take_weights(model, parent), 1);
  for (const auto& [name, tensor] : parent.state)
    EXPECT_EQ(tensor.bytes() == nullptr, model.state.at(name).bytes() == nullptr) << name;
  EXPECT_EQ(at(model, kQuery, 7, 5), at(parent, kQuery, 7, 5));
}

TEST(ParentWeights, AreCutToTheFirstRowsAndColumns) {
  io::Model model = model_of(1, 6, 1);
  const io::Model parent = model_of(2, 8, 2);
  EXPECT_EQ(take_weights(model, parent), 1);
  for (std::int64_t row = 0; row < 6; ++row)
    for (std::int64_t column = 0; column < 6; ++column)
      EXPECT_EQ(at(model, kQuery, row, column), at(parent, kQuery, row, column));
}

TEST(ParentWeights, GrowByWhatWasBuiltAndByTheLastLayer) {
  io::Model model = model_of(3, 12, 1);
  const io::Model built = model, parent = model_of(2, 8, 2);
  const double share = take_weights(model, parent);
  EXPECT_GT(share, 0.2);
  EXPECT_LT(share, 0.8);
  EXPECT_EQ(at(model, kQuery, 7, 7), at(parent, kQuery, 7, 7));
  EXPECT_EQ(at(model, kQuery, 8, 7), at(built, kQuery, 8, 7));
  EXPECT_EQ(at(model, kQuery, 7, 8), at(built, kQuery, 7, 8));
  EXPECT_EQ(at(model, kLater, 3, 3),
            at(parent, "bert.encoder.layer.1.attention.self.query.weight", 3, 3));
}

TEST(CutStates, GoBackToWhereTheyCameFrom) {
  const io::Model smaller = model_of(1, 6, 1);
  io::Model whole = model_of(2, 8, 2);
  const std::string moment = std::string("optimizer.m.") + kQuery;
  whole.state[moment] = whole.state.at(kQuery);
  State cut = cut_states(whole.state, smaller.state);
  EXPECT_EQ(cut.size(), smaller.state.size() + 1);
  EXPECT_EQ(cut.at(moment).dims(), smaller.state.at(kQuery).dims());
  const io::Model before = whole;
  for (float& value : cut.at(kQuery).mutable_data<float>()) value += 1;
  return_states(whole.state, cut);
  EXPECT_EQ(at(whole, kQuery, 5, 5), at(before, kQuery, 5, 5) + 1);
  EXPECT_EQ(at(whole, kQuery, 6, 5), at(before, kQuery, 6, 5));
  EXPECT_EQ(at(whole, kQuery, 5, 6), at(before, kQuery, 5, 6));
}

}  // namespace
}  // namespace lathe::search
