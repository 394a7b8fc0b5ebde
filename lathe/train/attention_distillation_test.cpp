#include "lathe/train/attention_distillation.h"

#include <gmock/gmock.h>

#include <cmath>

#include "lathe/core/testing/error_text.h"
#include "lathe/ops/attention_weights.h"
#include "lathe/train/testing/gradient_check.h"
#include "lathe/train/testing/taught_model.h"

namespace lathe::train {
namespace {

class AttentionDistillation : public TaughtModel {
 protected:
  // For each layer and head the weights of all queries of the batch, one after another.
  std::vector<std::vector<std::vector<double>>> maps(const io::Model& model) const {
    const Graph graph = packed(model);
    std::vector<std::vector<std::vector<double>>> result;
    for (const NodeId attention : layers_of(model).attentions) {
      const std::vector<Tensor> qk =
          values(model, {graph.input(attention, 0), graph.input(attention, 1)});
      const Tensor& offsets = feed_.at("offsets");
      const std::vector<const Tensor*> operands{&qk[0], &qk[1], &qk[1], nullptr, &offsets};
      const std::int64_t heads = graph.attribute(attention).integer("heads");
      const std::int64_t size = qk[0].dim(1) / heads;
      result.emplace_back(static_cast<std::size_t>(heads));
      ops::for_each_attention_row(
          graph.attribute(attention), operands, [&](const ops::AttentionRow& row) {
            std::vector<double>& all =
                result.back()[static_cast<std::size_t>(row.query % qk[0].dim(1) / size)];
            all.insert(all.end(), row.weights.begin(), row.weights.end());
          });
    }
    return result;
  }
  static double distance(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
  }
  static std::vector<double> mean(const std::vector<std::vector<double>>& heads) {
    std::vector<double> result(heads[0].size());
    for (const std::vector<double>& head : heads)
      for (std::size_t i = 0; i < head.size(); ++i)
        result[i] += head[i] / static_cast<double>(heads.size());
    return result;
  }

  // The mean of the loss over many draws of signs.
  double mean_added(const DistillationOptions& options, int draws) {
    const double labels = loss_sum(taught({}), feed_);
    const Graph graph = taught(options);
    double sum = 0;
    for (int step = 1; step <= draws; ++step) {
      set_step(step);
      sum += loss_sum(graph, feed_) - labels;
    }
    return sum / draws;
  }
  // Of a sum of squares of sums with random signs the variance is at most twice the square of its
  // mean; columns and draws average it. Four deviations.
  static double tolerance(double expected, int draws, std::int64_t columns) {
    return 4 * expected * std::sqrt(2.0 / static_cast<double>(draws * columns));
  }
};

TEST_F(AttentionDistillation, MeasuresTheDistanceOfTheMaps) {
  const io::Model teacher = make_model(2, {});
  const auto own = maps(student_), given = maps(teacher);
  double expected = 0;
  for (std::size_t layer = 0; layer < 2; ++layer)
    for (std::size_t head = 0; head < 2; ++head)
      expected += distance(own[layer][head], given[layer][head]) / 4;
  EXPECT_GT(expected, 0.1);
  constexpr int kDraws = 2000;
  EXPECT_NEAR(mean_added({.attention = 1, .teachers = {&teacher}}, kDraws), expected,
              tolerance(expected, kDraws, 4));
}

TEST_F(AttentionDistillation, ComparesMeansWhereTheNumbersOfHeadsDiffer) {
  const io::Model teacher = make_model(2, {.width = 12, .heads = 3, .layers = 1});
  const auto own = maps(student_), given = maps(teacher);
  const std::vector<double> theirs = mean(given[0]);
  const double expected = (distance(mean(own[0]), theirs) + distance(mean(own[1]), theirs)) / 2;
  constexpr int kDraws = 2000;
  EXPECT_NEAR(mean_added({.attention = 1, .teachers = {&teacher}}, kDraws), expected,
              tolerance(expected, kDraws, 4));
}

TEST_F(AttentionDistillation, OfATwinIsNothingAndDrawsNewSignsInEachStep) {
  EXPECT_EQ(added({.attention = 1, .teachers = {&student_}}), 0);
  const io::Model teacher = make_model(2, {});
  const DistillationOptions options{.attention = 1, .teachers = {&teacher}};
  const double first = added(options);
  EXPECT_EQ(added(options), first);
  set_step(2);
  EXPECT_NE(added(options), first);
}

TEST_F(AttentionDistillation, HasTheGradientOfItsLoss) {
  const io::Model teacher = make_model(2, {.layers = 3});
  const Graph graph = taught({.attention = 0.7, .teachers = {&teacher}});
  GradientCheck check(graph, state_, feed_);
  check.expect_gradient("bert.encoder.layer.0.attention.self.query.weight", 3);
  check.expect_gradient("bert.encoder.layer.1.attention.self.key.weight", 3);
  const io::Model wider = make_model(2, {.width = 12, .heads = 3});
  const Graph by_means = taught({.attention = 0.7, .teachers = {&wider}});
  GradientCheck means(by_means, state_, feed_);
  means.expect_gradient("bert.encoder.layer.0.attention.self.query.weight", 5);
}

TEST_F(AttentionDistillation, RefusesHeadsOfAnotherSize) {
  const io::Model teacher = make_model(2, {.width = 12, .heads = 2});
  EXPECT_EQ(error_text([&] { taught({.attention = 1, .teachers = {&teacher}}); }),
            "teacher somewhere: has heads of 6 features: expected 4, as the model's");
}

}  // namespace
}  // namespace lathe::train
