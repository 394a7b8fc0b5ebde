#include "lathe/experiment/pipeline/target.h"

#include <algorithm>

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

// What a layer or table may become, from most to fewest bits.
constexpr const char* kFormats[] = {"int:8,channel", "int:4,group=32", "int:4,channel",
                                    "int:3,channel", "ternary",        "binary:scaled"};

// Training after rounding. On 5,000 held-out reviews an encoder of two layers in four bits had
// 0.8956 after one epoch at this rate and 0.8994 after two, its float model 0.8880; with ternary
// tables two epochs at 5e-4 and at 1e-3 came to 0.8956 each.
constexpr std::int64_t kEpochs = 2;
constexpr double kRate = 3e-4;

// Training changes how well codes compress: by 0.2 % for a model that had been trained, by 4 % for
// one that had not. So much of the target is left for that.
constexpr double kSpare = 0.05;

// A weight or table that can be rounded, with what each format would cost and do.
struct Item {
  std::vector<std::string> layers = {};  ///< that read it
  /// An option for each format. Damage is how far the model's answers move: as many examples tell
  /// more by that than by their labels.
  compress::BudgetItem by_answers = {};
  compress::BudgetItem by_points = {};  ///< the same; damage is points of accuracy
};

class Planner {
 public:
  Planner(const io::Model& original, io::Storage storage, const engine::ExecutionOptions& execution,
          const Callbacks& callbacks)
      : original_(original), storage_(storage), execution_(execution), callbacks_(callbacks) {
    if (original.task != "classify")
      fail("target-size and max-loss are for classifiers: the model was saved for {}",
           original.task);
    if (compress::is_quantized(original.graph))
      fail("target-size and max-loss: the model is quantized already: expected a float one");
  }

  // Fails where the smallest formats of all weights are too large.
  void check_size(const std::string& text) {
    size_up();
    smallest_for(compress::parse_size_target(text), text);
  }

  std::vector<StageSpec> run(const CompressionTarget& target, train::ExampleSource& examples) {
    size_up();
    measure(examples);
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
  // The bytes of each weight in each format.
  void size_up() {
    const std::vector<compress::PrunableWeight> weights = compress::find_prunable(original_.graph);
    for (const compress::PrunableWeight& weight : weights) {
      callbacks_.tell({.activity = "sizing formats",
                       .unit = "weights",
                       .done = std::ssize(items_),
                       .total = std::ssize(weights)});
      Item item;
      for (const NodeId reader : weight.readers)
        item.layers.push_back(original_.graph.name(reader));
      for (const char* format : kFormats) {
        if (callbacks_.stops()) throw Interrupted();
        io::Model model = rounded(item, format);
        compress::pack_model(model, false);
        const std::int64_t bytes = io::stored_bytes(model, new_states(model), storage_);
        item.by_answers.push_back({.cost = bytes});
        item.by_points.push_back({.cost = bytes});
      }
      items_.push_back(std::move(item));
    }
  }

  // One measurement for each weight and format: the model with that weight alone rounded.
  void measure(train::ExampleSource& examples) {
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < examples.size(); ++i) labels.push_back(examples.label(i));
    const train::Answers plain = answer(original_, examples);
    const double accuracy = train::score(plain, labels).accuracy;
    for (std::size_t i = 0; i < items_.size(); ++i)
      for (std::size_t format = 0; format < std::size(kFormats); ++format) {
        callbacks_.tell({.activity = "trying formats",
                         .unit = "weights",
                         .done = static_cast<std::int64_t>(i),
                         .total = std::ssize(items_),
                         .note = kFormats[format]});
        const train::Answers seen = answer(rounded(items_[i], kFormats[format]), examples);
        items_[i].by_answers[format].damage = train::mean_divergence(plain.logits, seen.logits);
        // By chance a rounded model can do better, and that is worth nothing.
        const double lost = 100 * (accuracy - train::score(seen, labels).accuracy);
        items_[i].by_points[format].damage = std::max(0.0, lost);
      }
  }

  // The model with one weight alone in a format.
  io::Model rounded(const Item& item, const char* format) const {
    QuantizeOptions options;
    for (const std::string& layer : item.layers) options.by_name[layer] = format;
    return quantize(original_, options, nullptr, execution_, silent()).model;
  }

  std::vector<std::string> new_states(const io::Model& model) const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : model.state) {
      const auto before = original_.state.find(name);
      if (before == original_.state.end() || !identical(before->second, tensor))
        names.push_back(name);
    }
    return names;
  }

  train::Answers answer(const io::Model& model, train::ExampleSource& examples) const {
    train::Classifier classifier(model, {.execution = execution_});
    return train::answer_all(classifier, examples, {.progress = [&](std::int64_t, std::int64_t) {
                               return !callbacks_.stops();
                             }});
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

  std::int64_t bytes_of(const std::vector<std::size_t>& choice) const {
    return io::checkpoint_size(rounded(choice), storage_).bytes();
  }

  // The formats that make the model smallest, what they leave it with, and what it may have.
  struct Smallest {
    compress::BudgetChoice choice;
    std::int64_t least = 0, most = 0;
  };
  Smallest smallest_for(const compress::SizeTarget& target, const std::string& text) const {
    const std::int64_t wanted = target.bytes_for(io::model_size(original_.directory).bytes());
    const double share = storage_ == io::Storage::Compact ? 1 - kSpare : 1;
    Smallest result{.choice = compress::cheapest(each(&Item::by_answers)),
                    .most = static_cast<std::int64_t>(share * static_cast<double>(wanted))};
    result.least = bytes_of(result.choice.options);
    if (result.least > result.most)
      fail("target-size {}: is {}, but the smallest that can be met is {}", text,
           compress::bytes_text(wanted),
           compress::bytes_text(
               static_cast<std::int64_t>(static_cast<double>(result.least) / share) + 1));
    return result;
  }

  // What else a model's directory holds is known once it is written: the budget of the weights is
  // what that leaves, and the choice is made again until it fits.
  std::vector<std::size_t> by_size(const compress::SizeTarget& target, const std::string& text) {
    const auto [smallest, least, most] = smallest_for(target, text);
    const std::vector<compress::BudgetItem> items = each(&Item::by_answers);
    std::int64_t budget = most - (least - smallest.cost);
    for (int attempt = 0; attempt < 8; ++attempt) {
      const std::optional<compress::BudgetChoice> choice = compress::least_damage(items, budget);
      if (!choice) break;
      const std::int64_t bytes = bytes_of(choice->options);
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
  io::Storage storage_;
  const engine::ExecutionOptions& execution_;
  const Callbacks& callbacks_;
  std::vector<Item> items_;
};

}  // namespace

std::vector<StageSpec> plan_stages(const io::Model& original, const CompressionTarget& target,
                                   io::Storage storage, train::ExampleSource& examples,
                                   const engine::ExecutionOptions& execution,
                                   const Callbacks& callbacks) {
  return Planner(original, storage, execution, callbacks).run(target, examples);
}

void check_size_target(const io::Model& original, const std::string& size, io::Storage storage,
                       const engine::ExecutionOptions& execution, const Callbacks& callbacks) {
  Planner(original, storage, execution, callbacks).check_size(size);
}

}  // namespace lathe::experiment
