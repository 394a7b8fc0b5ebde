#include "lathe/data/written_labels.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "lathe/core/error.h"

namespace lathe::data {
namespace {

// More labels than this are a file that was misread, such as one of ratings or ids.
constexpr std::int32_t kMostLabels = 10'000;

std::optional<std::int64_t> as_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string place_of(const WrittenLabels& written, std::size_t index) {
  return written.lines.empty() ? written.place
                               : fmt::format("{}:{}", written.place, written.lines[index]);
}

std::vector<std::int32_t> integers_of(const WrittenLabels& written) {
  std::vector<std::int32_t> numbers;
  for (std::size_t i = 0; i < written.labels.size(); ++i) {
    const std::optional<std::int64_t> label = as_integer(written.labels[i]);
    if (!label)
      fail("{}: label is \"{}\", expected an integer", place_of(written, i), written.labels[i]);
    if (*label < 0 || *label >= kMostLabels)
      fail("{}: label is {}, expected 0 to {}", place_of(written, i), *label, kMostLabels - 1);
    numbers.push_back(static_cast<std::int32_t>(*label));
  }
  return numbers;
}

void check_every_label_occurs(const WrittenLabels& written,
                              const std::vector<std::int32_t>& numbers, std::int32_t count) {
  std::vector<bool> seen(static_cast<std::size_t>(count));
  for (const std::int32_t number : numbers) seen[static_cast<std::size_t>(number)] = true;
  for (std::int32_t label = 0; label < count; ++label)
    if (!seen[static_cast<std::size_t>(label)])
      fail("{}: labels go up to {}, but none is {}: expected 0 to n-1 without gaps", written.place,
           count - 1, label);
}

// The first label decides, so that one stray word among numbers is an error and not a name.
bool are_names(const WrittenLabels& written) {
  return written.may_be_names && !written.labels.empty() && !as_integer(written.labels.front());
}

// Which labels there are, in the order of their numbers.
std::vector<std::string> names_of(const WrittenLabels& written) {
  if (are_names(written)) {
    const std::set<std::string> names(written.labels.begin(), written.labels.end());
    if (names.size() > static_cast<std::size_t>(kMostLabels))
      fail("{}: has {} different labels, expected at most {}", written.place, names.size(),
           kMostLabels);
    return {names.begin(), names.end()};
  }
  const std::vector<std::int32_t> numbers = integers_of(written);
  const std::int32_t count =
      numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end()) + 1;
  if (written.is_training) check_every_label_occurs(written, numbers, count);
  std::vector<std::string> names;
  for (std::int32_t label = 0; label < count; ++label) names.push_back(std::to_string(label));
  return names;
}

}  // namespace

NumberedLabels number_labels(const WrittenLabels& written, const WrittenLabels* training) {
  const bool by_training = training && !training->labels.empty();
  const WrittenLabels& known = by_training ? *training : written;
  NumberedLabels result;
  result.names = names_of(known);
  std::vector<std::int32_t> integers;
  if (!are_names(known)) integers = integers_of(written);
  for (std::size_t i = 0; i < written.labels.size(); ++i) {
    const std::string label =
        integers.empty() ? written.labels[i] : std::to_string(integers[i]);  // "01" is 1
    std::int32_t number = 0;
    if (!integers.empty()) {
      number = integers[i];
    } else {
      const auto at = std::lower_bound(result.names.begin(), result.names.end(), label);
      number = at != result.names.end() && *at == label
                   ? static_cast<std::int32_t>(at - result.names.begin())
                   : static_cast<std::int32_t>(result.names.size());
    }
    if (number >= static_cast<std::int32_t>(result.names.size()))
      fail("{}: label \"{}\" does not occur in the training split, whose labels are {}",
           place_of(written, i), label, fmt::join(result.names, ", "));
    result.numbers.push_back(number);
  }
  return result;
}

}  // namespace lathe::data
