#include "lathe/experiment/pipeline/target.h"

#include <algorithm>
#include <cmath>

#include "lathe/compress/budget.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/pruning/prunable_weights.h"
#include "lathe/compress/quantizers.h"
#include "lathe/compress/size_target.h"
#include "lathe/experiment/quantize.h"
#include "lathe/io/model_size.h"
#include "lathe/train/classifier.h"
#include "lathe/train/evaluation.h"

namespace lathe::experiment {
namespace {

// What a layer or table may become, from most to fewest bits: 8, 5 (scales included), 4.25, 3.25,
// and for rows of 128 numbers 2.25 and 1.25.
constexpr const char* kFormats[] = {"int:8,channel", "int:4,group=32", "mxint:4",
                                    "mxint:3",       "ternary",        "binary:scaled"};

// Training after rounding: what a model of two layers needed on held-out reviews, and little more.
constexpr std::int64_t kEpochs = 3;
constexpr double kRate = 3e-4;

// A weight or table that can be rounded, with what each format would cost and do.
struct Item {
  std::vector<std::string> layers = {};  ///< that read it
  compress::BudgetItem by_loss = {};     ///< an option for each format; damage is a larger loss
  compress::BudgetItem by_points = {};   ///< the same; damage is points of accuracy
};

class Planner {
 public:
  Planner(const io::Model& original, train::ExampleSource& examples,
          const engine::ExecutionOptions& execution, const Callbacks& callbacks)
      : original_(original), examples_(examples), execution_(execution), callbacks_(callbacks) {
    if (original.task != "classify")
      fail("target-size and max-loss are for classifiers: the model was saved for {}",
           original.task);
    if (compress::is_quantized(original.graph))
      fail("target-size and max-loss: the model is quantized already: expected a float one");
  }

  std::vector<StageSpec> run(const CompressionTarget& target) {
    measure();
    const std::vector<std::size_t> choice =
        target.max_loss ? by_loss(*target.max_loss)
                        : by_size(compress::parse_size_target(target.size), target.size);
    nlohmann::json formats = nlohmann::json::object();
    for (std::size_t i = 0; i < items_.size(); ++i)
      for (const std::string& layer : items_[i].layers) formats[layer] = kFormats[choice[i]];
    return {{.kind = "quantize", .settings = {{"by-name", formats}}},
            {.kind = "distil", .settings = {{"epochs", kEpochs}, {"cycles", 1}, {"lr", kRate}}}};
  }

 private:
  // One measurement for each weight and format: the model with that weight alone rounded.
  void measure() {
    const std::vector<compress::PrunableWeight> weights = compress::find_prunable(original_.graph);
    const train::Evaluation plain = evaluate(original_);
    for (const compress::PrunableWeight& weight : weights) {
      Item item;
      for (const NodeId reader : weight.readers)
        item.layers.push_back(original_.graph.name(reader));
      for (const char* format : kFormats) {
        callbacks_.tell({.activity = "trying formats",
                         .unit = "weights",
                         .done = std::ssize(items_),
                         .total = std::ssize(weights),
                         .note = format});
        QuantizeOptions options;
        for (const std::string& layer : item.layers) options.by_name[layer] = format;
        const Quantized rounded = quantize(original_, options, nullptr, execution_, silent());
        const train::Evaluation seen = evaluate(rounded.model);
        const std::int64_t bytes = bytes_of(rounded);
        // By chance a rounded model can do better, and that is worth nothing.
        item.by_loss.push_back({.cost = bytes, .damage = std::max(0.0, seen.loss - plain.loss)});
        item.by_points.push_back(
            {.cost = bytes, .damage = std::max(0.0, 100 * (plain.accuracy - seen.accuracy))});
      }
      items_.push_back(std::move(item));
    }
  }

  train::Evaluation evaluate(const io::Model& model) const {
    train::Classifier classifier(model, {.execution = execution_});
    return train::evaluate(
        classifier, examples_, static_cast<std::int64_t>(model.label_names.size()),
        {.progress = [&](std::int64_t, std::int64_t) { return !callbacks_.stops(); }});
  }

  // Of what is rounded, scales included.
  static std::int64_t bytes_of(const Quantized& quantized) {
    double bits = 0;
    for (const compress::TensorReport& tensor : quantized.tensors)
      bits += static_cast<double>(tensor.elements) * tensor.bits;
    return static_cast<std::int64_t>(std::ceil(bits / 8));
  }

  std::vector<compress::BudgetItem> each(compress::BudgetItem Item::*options) const {
    std::vector<compress::BudgetItem> result;
    for (const Item& item : items_) result.push_back(item.*options);
    return result;
  }

  io::Model rounded(const std::vector<std::size_t>& choice) const {
    QuantizeOptions options;
    for (std::size_t i = 0; i < items_.size(); ++i)
      for (const std::string& layer : items_[i].layers)
        options.by_name[layer] = kFormats[choice[i]];
    io::Model model = quantize(original_, options, nullptr, execution_, silent()).model;
    compress::pack_model(model, false);
    return model;
  }

  // What else a model's directory holds is known once it is written: the budget of the weights is
  // what that leaves, and the choice is made again until it fits.
  std::vector<std::size_t> by_size(const compress::SizeTarget& target, const std::string& text) {
    const std::int64_t most = target.bytes_for(io::model_size(original_.directory).bytes());
    const std::vector<compress::BudgetItem> items = each(&Item::by_loss);
    const compress::BudgetChoice smallest = compress::cheapest(items);
    const std::int64_t least = io::checkpoint_size(rounded(smallest.options)).bytes();
    if (least > most)
      fail("target-size {}: is {}, but the smallest that can be met is {}", text,
           compress::bytes_text(most), compress::bytes_text(least));
    std::int64_t budget = most - (least - smallest.cost);
    for (int attempt = 0; attempt < 8; ++attempt) {
      const std::optional<compress::BudgetChoice> choice = compress::least_damage(items, budget);
      if (!choice) break;
      const std::int64_t bytes = io::checkpoint_size(rounded(choice->options)).bytes();
      if (bytes <= most) return choice->options;
      budget = choice->cost - (bytes - most);
    }
    return smallest.options;
  }

  // What layers lose alone is added up: more than they lose together as a rule, and what training
  // wins back is not counted, so the result loses less than it may.
  std::vector<std::size_t> by_loss(double points) {
    if (!(points >= 0 && points <= 100)) fail("max-loss {}: expected 0 to 100 points", points);
    const std::vector<compress::BudgetItem> items = each(&Item::by_points);
    const std::optional<compress::BudgetChoice> choice = compress::least_cost(items, points);
    if (!choice)
      fail("max-loss {}: cannot be kept: expected at least {:.2f}, which the best formats lose",
           points, least_points());
    return choice->options;
  }

  double least_points() const {
    double sum = 0;
    for (const Item& item : items_)
      sum += std::ranges::min(item.by_points, {}, &compress::BudgetOption::damage).damage;
    return sum;
  }

  static const Callbacks& silent() {
    static const Callbacks none;
    return none;
  }

  const io::Model& original_;
  train::ExampleSource& examples_;
  const engine::ExecutionOptions& execution_;
  const Callbacks& callbacks_;
  std::vector<Item> items_;
};

}  // namespace

std::vector<StageSpec> plan_stages(const io::Model& original, const CompressionTarget& target,
                                   train::ExampleSource& examples,
                                   const engine::ExecutionOptions& execution,
                                   const Callbacks& callbacks) {
  return Planner(original, examples, execution, callbacks).run(target);
}

}  // namespace lathe::experiment
