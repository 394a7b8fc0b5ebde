#include "lathe/data/written_labels.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <unordered_map>

#include "lathe/core/error.h"
#include "lathe/core/utf8_text.h"
#include "lathe/data/dataset_reader.h"

namespace lathe::data {
namespace {

// More labels than this are a file that was misread, such as one of ids.
constexpr std::size_t kMostLabels = 10'000;

// The finite number that a text is, if it is one.
std::optional<double> as_real(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() ||
      !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool is_whole(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15;
}

std::string place_of(const WrittenLabels& written, std::size_t index) {
  return written.lines.empty() ? written.place
                               : fmt::format("{}:{}", written.place, written.lines[index]);
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(kBetweenLabels, begin), list.size());
    parts.push_back(label_name(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

LabelKind kind_of(const WrittenLabels& written) {
  if (written.are_lists) return LabelKind::Set;
  bool has_fraction = false;
  for (const std::string& label : written.labels) {
    const std::optional<double> value = as_real(label);
    if (!value) return LabelKind::Class;
    has_fraction = has_fraction || !is_whole(*value);
  }
  return has_fraction ? LabelKind::Number : LabelKind::Class;
}

// One stray word among numbers is a mistake and not a class.
void refuse_mixture(const WrittenLabels& written) {
  const auto is_number = [](const std::string& label) { return as_real(label).has_value(); };
  const bool first = written.labels.empty() || is_number(written.labels.front());
  for (std::size_t i = 0; i < written.labels.size(); ++i)
    if (is_number(written.labels[i]) != first)
      fail("{}: label is \"{}\", but the first one is \"{}\": expected {}", place_of(written, i),
           written.labels[i], written.labels.front(), first ? "numbers alone" : "names alone");
}

// Names go into configurations and reports, which are UTF-8.
void refuse_other_encodings(const WrittenLabels& written) {
  for (const std::string& name : written.list_names)
    if (!is_utf8(name)) fail("{}: label \"{}\" is not UTF-8", written.place, escape_bytes(name));
  for (std::size_t i = 0; i < written.labels.size(); ++i)
    if (!is_utf8(written.labels[i]))
      fail("{}: label \"{}\" is not UTF-8", place_of(written, i), escape_bytes(written.labels[i]));
}

// Which labels there are, in order.
std::vector<std::string> names_of(const WrittenLabels& written, LabelKind kind) {
  if (!written.list_names.empty()) return written.list_names;
  std::set<std::string> found;
  for (const std::string& label : written.labels) {
    if (kind == LabelKind::Class)
      found.insert(label_name(label));
    else
      for (std::string& part : parts_of(label)) found.insert(std::move(part));
    if (found.size() > kMostLabels)
      fail("{}: has more than {} different labels: are they labels?", written.place, kMostLabels);
  }
  std::vector<std::string> names(found.begin(), found.end());
  const auto is_number = [](const std::string& name) { return as_real(name).has_value(); };
  if (std::ranges::all_of(names, is_number))
    std::ranges::sort(names, {}, [](const std::string& name) { return *as_real(name); });
  return names;
}

// The first of them: a table may have thousands.
std::string shown(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 20;
  if (names.size() <= kShown) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, ... ({} in all)", fmt::join(names.begin(), names.begin() + kShown, ", "),
                     names.size());
}

// Texts that were taken for labels differ in nearly every row, and would be learned by heart.
void refuse_texts(const WrittenLabels& written, const std::vector<std::string>& names) {
  if (names.size() <= 20 || 10 * names.size() < 9 * written.labels.size()) return;
  throw UserError(
      fmt::format("{}: {} rows have {} different labels, \"{}\" in the first: are they "
                  "labels?",
                  written.place, written.labels.size(), names.size(), written.labels.front()),
      "say which column holds the labels: label-column NAME");
}

class Numbering {
 public:
  explicit Numbering(std::vector<std::string> names) : names_(std::move(names)) {
    for (std::size_t i = 0; i < names_.size(); ++i)
      numbers_[names_[i]] = static_cast<std::int32_t>(i);
  }
  std::int32_t number(const std::string& label, const WrittenLabels& written,
                      std::size_t index) const {
    const auto found = numbers_.find(label);
    if (found == numbers_.end())
      fail("{}: label \"{}\" does not occur in the training split, whose labels are {}",
           place_of(written, index), label, shown(names_));
    return found->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

void set_numbers(Dataset& dataset, const WrittenLabels& written) {
  dataset.targets.reserve(written.labels.size());
  for (std::size_t i = 0; i < written.labels.size(); ++i) {
    const std::optional<double> value = as_real(written.labels[i]);
    if (!value)
      fail("{}: label is \"{}\", expected a number", place_of(written, i), written.labels[i]);
    dataset.targets.push_back(static_cast<float>(*value));
    dataset.examples[i].label = 0;
  }
}

void set_sets(Dataset& dataset, const WrittenLabels& written, const Numbering& numbering) {
  const std::size_t width = numbering.names().size();
  if (width == 0) fail("{}: no example has a label", written.place);
  dataset.targets.assign(written.labels.size() * width, 0);
  for (std::size_t i = 0; i < written.labels.size(); ++i) {
    for (const std::string& part : parts_of(written.labels[i]))
      dataset.targets[i * width + static_cast<std::size_t>(numbering.number(part, written, i))] = 1;
    dataset.examples[i].label = 0;
  }
}

}  // namespace

std::string label_name(const std::string& written) {
  const std::optional<double> value = as_real(written);
  return value && is_whole(*value) ? fmt::format("{:.0f}", *value + 0.0) : written;
}

void set_labels(Dataset& dataset, const WrittenLabels& written, const WrittenLabels* training,
                std::optional<LabelKind> kind) {
  refuse_other_encodings(written);
  if (training != nullptr) refuse_other_encodings(*training);
  check(written.labels.size() == dataset.examples.size(), "a label for each example");
  const WrittenLabels& known = training && !training->labels.empty() ? *training : written;
  dataset.label_kind = kind.value_or(kind_of(known));
  if (dataset.label_kind == LabelKind::Number) return set_numbers(dataset, written);
  if (dataset.label_kind == LabelKind::Class && written.are_lists)
    fail("{}: labels are lists, expected one label a row", written.place);
  if (dataset.label_kind == LabelKind::Class) refuse_mixture(known);
  const Numbering numbering(names_of(known, dataset.label_kind));
  if (dataset.label_kind == LabelKind::Class) refuse_texts(known, numbering.names());
  dataset.label_names = numbering.names();
  if (dataset.label_kind == LabelKind::Set) return set_sets(dataset, written, numbering);
  for (std::size_t i = 0; i < written.labels.size(); ++i)
    dataset.examples[i].label = numbering.number(label_name(written.labels[i]), written, i);
}

}  // namespace lathe::data
