#include "lathe/train/attention_distillation.h"

#include <algorithm>

#include "lathe/core/role.h"

namespace lathe::train {
namespace {

// The stream of random numbers of the signs, which no dropout of a model draws from.
constexpr std::int64_t kSite = 65535;

struct Heads {
  std::int64_t count, kv_count, size;
};

class AttentionLoss {
 public:
  AttentionLoss(LossBuilder& loss, std::string name)
      : loss_(loss), graph_(loss.graph()), name_(std::move(name)) {}

  Value distance(std::size_t index, NodeId student, NodeId teacher) {
    const std::string name = fmt::format("{}.{}", name_, index);
    const Heads own = heads_of(student), given = heads_of(teacher);
    if (own.size != given.size)
      fail("has heads of {} features: expected {}, as the model's", given.size, own.size);
    // The teacher's keys lend the signs their shape: those of the student have gradients.
    if (signs_.is_none()) signs_ = make_signs(operand(teacher, OperandRole::Key), own.size);
    Value mine = sketch(name + "/student", student, own);
    Value theirs = sketch(name + "/teacher", teacher, given);
    std::int64_t width = own.count * own.size;
    if (own.count != given.count) {
      mine = mean_over_heads(name + "/student_mean", mine, own);
      theirs = mean_over_heads(name + "/teacher_mean", theirs, given);
      width = own.size;
    }
    const Value sum = loss_.add(name + "/squares", "squared_error", {mine, theirs});
    return loss_.times(name, sum, 1 / static_cast<double>(width));
  }

 private:
  Value operand(NodeId attention, OperandRole role) const {
    const std::optional<std::size_t> index = find_operand(graph_, attention, role);
    if (!index) fail("its attention \"{}\" has no {}", graph_.name(attention), lathe::name(role));
    return graph_.input(attention, *index);
  }

  Heads heads_of(NodeId attention) const {
    const AttributeReader attributes = graph_.attribute(attention);
    const std::int64_t count = attributes.integer("heads");
    const std::int64_t kv_count = attributes.integer("kv_heads");
    return {count, kv_count == 0 ? count : kv_count,
            graph_.type(operand(attention, OperandRole::Query)).axis(-1).constant() / count};
  }

  // The attention's map times the signs, without the dropout of training.
  Value sketch(const std::string& name, NodeId attention, const Heads& heads) {
    Attributes attributes = graph_.attributes(attention);
    attributes.erase("dropout");
    attributes.erase("site");
    Value signs = signs_;
    if (heads.kv_count > 1)
      signs = loss_.add(name + "/signs", "concat",
                        std::vector<Value>(static_cast<std::size_t>(heads.kv_count), signs_),
                        {{"axis", std::int64_t{-1}}});
    return loss_.add(name, "attention",
                     {operand(attention, OperandRole::Query), operand(attention, OperandRole::Key),
                      signs, kNone, offsets()},
                     std::move(attributes));
  }

  Value offsets() const { return {graph_.at("offsets"), 0}; }

  // One and minus one with equal chances, a row of `size` for each token: ones of which half are
  // dropped and the others doubled, less one. All heads and layers share them.
  Value make_signs(Value keys, std::int64_t size) {
    const Type tokens{DType::I32, {Size::symbol("T")}};
    const Value random = loss_.input("random", {DType::I32, {Size(3)}});
    const Value examples = loss_.input("examples", {DType::I32, {Size::symbol("S")}});
    const Value ones = loss_.add(
        "ones", "full_like",
        {loss_.add("columns", "slice", {keys},
                   {{"axis", std::int64_t{-1}}, {"begin", std::int64_t{0}}, {"end", size}})},
        {{"value", 1.0}});
    const Value doubled =
        loss_.add("doubled", "random_dropout",
                  {ones, random,
                   loss_.add("examples", "packed_examples", {examples, offsets()}, {}, {tokens}),
                   loss_.add("positions", "packed_positions", {offsets()}, {}, {tokens})},
                  {{"rate", 0.5}, {"site", kSite}});
    return loss_.add("signs", "sub", {doubled, ones});
  }

  Value mean_over_heads(const std::string& name, Value x, const Heads& heads) {
    const std::vector<std::int64_t> sizes(static_cast<std::size_t>(heads.count), heads.size);
    const Value parts =
        loss_.add(name + "/heads", "split", {x}, {{"axis", std::int64_t{-1}}, {"sizes", sizes}});
    std::vector<Value> terms;
    for (std::int64_t head = 0; head < heads.count; ++head)
      terms.push_back({parts.node, static_cast<std::int32_t>(head)});
    return loss_.times(name, loss_.sum(name + "/sum", terms), 1 / static_cast<double>(heads.count));
  }

  LossBuilder& loss_;
  Graph& graph_;
  std::string name_;
  Value signs_ = kNone;
};

}  // namespace

Value attention_loss(LossBuilder& loss, const TransformerLayers& student,
                     const TransformerLayers& teacher, const std::string& name) {
  const std::size_t own = student.attentions.size(), given = teacher.attentions.size();
  AttentionLoss attention(loss, name);
  std::vector<Value> terms;
  for (std::size_t i = 1; i <= own; ++i) {
    const std::size_t match = std::max<std::size_t>(1, matching_layer(i, own, given));
    terms.push_back(
        attention.distance(i - 1, student.attentions[i - 1], teacher.attentions[match - 1]));
  }
  return loss.times(name + "/mean", loss.sum(name + "/sum", terms),
                    1 / static_cast<double>(terms.size()));
}

}  // namespace lathe::train
