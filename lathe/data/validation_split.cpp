#include "lathe/data/validation_split.h"

#include <algorithm>
#include <map>

#include "lathe/core/error.h"
#include "lathe/data/counter_random.h"

namespace lathe::data {

ValidationSplit split_validation(std::span<const std::int32_t> labels, std::int64_t count,
                                 std::uint64_t seed) {
  const auto total = static_cast<std::int64_t>(labels.size());
  if (count < 0 || count >= total)
    fail("cannot hold out {} of {} examples for validation, expected at least one to train on",
         count, total);
  struct Group {
    std::vector<std::int64_t> members;
    std::int64_t quota = 0;
    std::int64_t remainder = 0;
  };
  std::map<std::int32_t, Group> groups;
  for (std::int64_t i = 0; i < total; ++i)
    groups[labels[static_cast<std::size_t>(i)]].members.push_back(i);

  // Each label gets its share rounded down; the labels that lost most by that get one more.
  std::vector<Group*> by_remainder;
  std::int64_t left = count;
  for (auto& [label, group] : groups) {
    const auto scaled = static_cast<std::int64_t>(group.members.size()) * count;
    group.quota = scaled / total;
    group.remainder = scaled % total;
    left -= group.quota;
    by_remainder.push_back(&group);
  }
  std::stable_sort(by_remainder.begin(), by_remainder.end(),
                   [](const Group* a, const Group* b) { return a->remainder > b->remainder; });
  for (std::int64_t i = 0; i < left; ++i) ++by_remainder[static_cast<std::size_t>(i)]->quota;

  ValidationSplit split;
  for (auto& [label, group] : groups) {
    CounterRandom(seed, static_cast<std::uint64_t>(label)).shuffle(std::span(group.members));
    const auto middle = group.members.begin() + group.quota;
    split.validation.insert(split.validation.end(), group.members.begin(), middle);
    split.train.insert(split.train.end(), middle, group.members.end());
  }
  std::sort(split.validation.begin(), split.validation.end());
  std::sort(split.train.begin(), split.train.end());
  return split;
}

Dataset select(const Dataset& dataset, std::span<const std::int64_t> examples) {
  Dataset selected;
  selected.label_names = dataset.label_names;
  selected.examples.reserve(examples.size());
  selected.label_kind = dataset.label_kind;
  selected.has_pairs = dataset.has_pairs;
  selected.has_words = dataset.has_words;
  selected.store = dataset.store;
  const std::int64_t width = dataset.num_targets();
  if (dataset.arrays) selected.arrays = Arrays{dataset.arrays->shape, {}};
  for (const std::int64_t example : examples) {
    check(example >= 0 && example < static_cast<std::int64_t>(dataset.examples.size()),
          "an example of the dataset");
    selected.examples.push_back(dataset.examples[static_cast<std::size_t>(example)]);
    const auto first = dataset.targets.begin() + example * width;
    selected.targets.insert(selected.targets.end(), first, first + width);
    if (!dataset.arrays) continue;
    const std::span<const float> row = dataset.arrays->row(example);
    selected.arrays->values.insert(selected.arrays->values.end(), row.begin(), row.end());
  }
  return selected;
}

Dataset take_some(Dataset all, std::int64_t count) {
  if (count <= 0 || count >= static_cast<std::int64_t>(all.examples.size())) return all;
  return select(all, split_validation(all.labels(), count, 0).validation);
}

}  // namespace lathe::data
