#include "lathe/compress/choice_problem.h"

#include <algorithm>
#include <limits>

#include "lathe/core/error.h"

// The multiple-choice knapsack problem, solved exactly as Pisinger does (A minimal algorithm for
// the multiple-choice knapsack problem, 1995).
//
// Were fractions of options allowed, the best choice would move each class along the convex hull of
// its options, the steepest steps of all classes first, until the capacity is used up. That choice,
// less the step that no longer fits, is nearly always nearly right: classes whose next or last step
// is about as steep as that one may have to move, the others hardly ever. So the classes are opened
// one after another, the doubtful ones first; all combinations of the open ones are kept that no
// other beats in both sums and that could still become better than the best choice known. When none
// is left, the best known is the best there is.
//
// All numbers are whole, and slopes are compared as fractions: nothing here rounds.
namespace lathe::compress {
namespace {

__extension__ using Wide = __int128;  // products of two numbers below 2^62
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// How much value a unit of weight saves.
struct Slope {
  std::int64_t value = 0;   ///< saved, not negative
  std::int64_t weight = 1;  ///< 0: infinite
};
bool is_steeper(const Slope& a, const Slope& b) {
  return Wide{a.value} * b.weight > Wide{b.value} * a.weight;
}

// Options that are worth their weight, the lightest first: each heavier one has a smaller value.
struct Class {
  std::vector<ClassOption> options;
  std::vector<std::size_t> hull;  ///< options on the lower convex hull
  std::size_t at = 0;             ///< where on the hull the class stands

  const ClassOption& current() const { return options[hull[at]]; }
  Slope slope(std::size_t step) const {
    const ClassOption& from = options[hull[step]];
    const ClassOption& to = options[hull[step + 1]];
    return {from.value - to.value, to.weight - from.weight};
  }
  // What moving on would save, and what the last move saved.
  Slope next() const { return at + 1 < hull.size() ? slope(at) : Slope{0, 1}; }
  Slope last() const { return at > 0 ? slope(at - 1) : Slope{1, 0}; }
};

Class make_class(std::vector<ClassOption> options) {
  std::sort(options.begin(), options.end(), [](const ClassOption& a, const ClassOption& b) {
    if (a.weight != b.weight) return a.weight < b.weight;
    return a.value != b.value ? a.value < b.value : a.index < b.index;
  });
  Class result;
  for (const ClassOption& option : options)
    if (result.options.empty() || option.value < result.options.back().value)
      result.options.push_back(option);
  for (std::size_t i = 0; i < result.options.size(); ++i) {
    // The middle of three is above the line from the first to the last, or on it.
    while (result.hull.size() >= 2) {
      const ClassOption& first = result.options[result.hull[result.hull.size() - 2]];
      const ClassOption& middle = result.options[result.hull.back()];
      const ClassOption& last = result.options[i];
      const Slope before{first.value - middle.value, middle.weight - first.weight};
      const Slope after{middle.value - last.value, last.weight - middle.weight};
      if (is_steeper(before, after)) break;
      result.hull.pop_back();
    }
    result.hull.push_back(i);
  }
  return result;
}

// A combination of the open classes' options, the others standing where they stand.
struct Combination {
  std::int64_t weight = 0;
  std::int64_t value = 0;
  std::size_t parent = kNone;  ///< among the combinations before the last class was opened
  std::size_t option = 0;      ///< of the class that was opened last
};

class Solver {
 public:
  Solver(std::vector<std::vector<ClassOption>> classes, std::int64_t capacity)
      : capacity_(capacity) {
    for (std::vector<ClassOption>& options : classes)
      classes_.push_back(make_class(std::move(options)));
  }

  std::optional<std::vector<std::size_t>> solve() {
    for (const Class& each : classes_) {
      weight_ += each.current().weight;
      value_ += each.current().value;
    }
    if (weight_ > capacity_) return std::nullopt;
    climb();
    best_value_ = value_;
    for (const Class& each : classes_) best_.push_back(each.hull[each.at]);
    if (broken_ != kNone) {
      fill_up();
      search();
    }
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < classes_.size(); ++i)
      result.push_back(classes_[i].options[best_[i]].index);
    return result;
  }

 private:
  // Every step of every class, the steepest first. Those of one class come in their order.
  std::vector<std::size_t> steps() const {
    struct Step {
      Slope slope;
      std::size_t owner;
    };
    std::vector<Step> all;
    for (std::size_t i = 0; i < classes_.size(); ++i)
      for (std::size_t step = 0; step + 1 < classes_[i].hull.size(); ++step)
        all.push_back({classes_[i].slope(step), i});
    std::stable_sort(all.begin(), all.end(),
                     [](const Step& a, const Step& b) { return is_steeper(a.slope, b.slope); });
    std::vector<std::size_t> owners;
    for (const Step& step : all) owners.push_back(step.owner);
    return owners;
  }

  // Moves classes along their hulls until a step does not fit: that class is `broken_`.
  void climb() {
    for (const std::size_t owner : steps()) {
      Class& moved = classes_[owner];
      const ClassOption& from = moved.current();
      const ClassOption& to = moved.options[moved.hull[moved.at + 1]];
      if (weight_ + to.weight - from.weight > capacity_) {
        broken_ = owner;
        return;
      }
      weight_ += to.weight - from.weight;
      value_ += to.value - from.value;
      ++moved.at;
    }
  }

  // A first good choice: whatever saves most and still fits, class by class.
  void fill_up() {
    std::int64_t weight = weight_, value = value_;
    for (const std::size_t i : opening_order()) {
      const Class& each = classes_[i];
      const ClassOption& from = each.current();
      for (std::size_t option = each.options.size(); option-- > each.hull[each.at] + 1;) {
        const ClassOption& to = each.options[option];
        if (weight + to.weight - from.weight > capacity_) continue;
        weight += to.weight - from.weight;
        value += to.value - from.value;
        best_[i] = option;
        break;
      }
    }
    best_value_ = value;
  }

  // The broken class, then the others by how near the slope of their next or last step is to its.
  std::vector<std::size_t> opening_order() const {
    std::vector<std::size_t> by_next, by_last;
    for (std::size_t i = 0; i < classes_.size(); ++i)
      if (i != broken_) by_next.push_back(i);
    by_last = by_next;
    std::stable_sort(by_next.begin(), by_next.end(), [&](std::size_t a, std::size_t b) {
      return is_steeper(classes_[a].next(), classes_[b].next());
    });
    std::stable_sort(by_last.begin(), by_last.end(), [&](std::size_t a, std::size_t b) {
      return is_steeper(classes_[b].last(), classes_[a].last());
    });
    std::vector<std::size_t> order{broken_};
    std::vector<bool> is_taken(classes_.size());
    is_taken[broken_] = true;
    for (std::size_t i = 0; i < by_next.size(); ++i)
      for (const std::size_t next : {by_next[i], by_last[i]}) {
        if (is_taken[next]) continue;
        is_taken[next] = true;
        order.push_back(next);
      }
    return order;
  }

  // Whether a combination may still become better than the best one known, when the classes that
  // are not open save at most `next` a unit of weight, and lose at least `last`.
  bool is_promising(const Combination& each, const Slope& next, const Slope& last) const {
    const Wide ahead = Wide{best_value_} - each.value;  // better by so much already
    if (each.weight <= capacity_)
      return Wide{capacity_ - each.weight} * next.value > -ahead * next.weight;
    return Wide{each.weight - capacity_} * last.value < ahead * last.weight;
  }

  // Options that no choice better than the best one known can have: their value and, by the broken
  // step's slope, their weight cost more than the fractional optimum leaves.
  bool is_hopeless(const Class& owner, const ClassOption& option) const {
    const Slope slope = classes_[broken_].next();
    const ClassOption& current = owner.current();
    const Wide value = Wide{value_} + option.value - current.value - best_value_;
    const Wide weight = Wide{capacity_} - weight_ - option.weight + current.weight;
    return value * slope.weight >= weight * slope.value;
  }

  void search() {
    const std::vector<std::size_t> order = opening_order();
    std::vector<std::vector<Combination>> levels{{{weight_, value_, kNone, 0}}};
    // The steepest next and the flattest last step among classes from each place of the order on.
    std::vector<Slope> next(order.size() + 1, Slope{0, 1}), last(order.size() + 1, Slope{1, 0});
    for (std::size_t i = order.size(); i-- > 0;) {
      const Class& each = classes_[order[i]];
      next[i] = is_steeper(each.next(), next[i + 1]) ? each.next() : next[i + 1];
      last[i] = is_steeper(last[i + 1], each.last()) ? each.last() : last[i + 1];
    }
    for (std::size_t depth = 0; depth < order.size() && !levels.back().empty(); ++depth)
      levels.push_back(open(order, depth, levels, next[depth + 1], last[depth + 1]));
  }

  // The combinations with the class at that place of the order opened.
  std::vector<Combination> open(const std::vector<std::size_t>& order, std::size_t depth,
                                const std::vector<std::vector<Combination>>& levels,
                                const Slope& next, const Slope& last) {
    const Class& opened = classes_[order[depth]];
    const ClassOption& current = opened.current();
    std::vector<Combination> all;
    std::size_t middle = 0;
    const auto is_before = [](const Combination& a, const Combination& b) {
      return a.weight != b.weight ? a.weight < b.weight : a.value < b.value;
    };
    for (std::size_t option = 0; option < opened.options.size(); ++option) {
      const ClassOption& taken = opened.options[option];
      if (option != opened.hull[opened.at] && is_hopeless(opened, taken)) continue;
      middle = all.size();
      for (std::size_t parent = 0; parent < levels[depth].size(); ++parent) {
        const Combination& base = levels[depth][parent];
        const Combination each{base.weight + taken.weight - current.weight,
                               base.value + taken.value - current.value, parent, option};
        if (each.weight <= capacity_ && each.value < best_value_)
          remember(order, depth, levels, each);
        if (is_promising(each, next, last)) all.push_back(each);
      }
      // Each option's combinations are in order already.
      std::inplace_merge(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(middle), all.end(),
                         is_before);
      keep_undominated(all);
    }
    // What was promising before a better choice was found may no longer be.
    std::erase_if(all, [&](const Combination& each) { return !is_promising(each, next, last); });
    return all;
  }

  // Of combinations in order of weight, those that are better than every lighter one.
  static void keep_undominated(std::vector<Combination>& all) {
    std::size_t kept = 0;
    for (const Combination& each : all)
      if (kept == 0 || each.value < all[kept - 1].value) all[kept++] = each;
    all.resize(kept);
  }

  void remember(const std::vector<std::size_t>& order, std::size_t depth,
                const std::vector<std::vector<Combination>>& levels, const Combination& each) {
    best_value_ = each.value;
    for (std::size_t i = 0; i < classes_.size(); ++i) best_[i] = classes_[i].hull[classes_[i].at];
    const Combination* link = &each;
    for (std::size_t level = depth + 1; level-- > 0;) {
      best_[order[level]] = link->option;
      link = &levels[level][level == 0 ? 0 : link->parent];
    }
  }

  std::int64_t capacity_;
  std::vector<Class> classes_;
  std::int64_t weight_ = 0, value_ = 0;  ///< of where the classes stand
  std::size_t broken_ = kNone;
  std::vector<std::size_t> best_;  ///< an option of each class
  std::int64_t best_value_ = 0;
};

}  // namespace

std::optional<std::vector<std::size_t>> solve_choices(std::vector<std::vector<ClassOption>> classes,
                                                      std::int64_t capacity) {
  for (const std::vector<ClassOption>& options : classes)
    check(!options.empty(), "a class with options");
  return Solver(std::move(classes), capacity).solve();
}

}  // namespace lathe::compress
