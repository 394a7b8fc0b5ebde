#include "lathe/cli/flags.h"

#include <fmt/core.h>

#include <CLI/App.hpp>
#include <charconv>

namespace lathe::cli {
namespace {

// Bounds that are there for arithmetic's sake are not worth words.
constexpr std::int64_t kNobodyAsks = std::int64_t{1} << 30;

std::string words_of(std::int64_t least, std::int64_t most) {
  return most >= kNobodyAsks ? fmt::format("at least {}", least)
                             : fmt::format("{} to {}", least, most);
}

// Refuses what is no such number or not within the range, both bounds included.
template <typename Number>
CLI::Validator range_validator(Number least, Number most, const std::string& kind,
                               const std::string& words) {
  const auto check = [=](const std::string& text) -> std::string {
    const std::string_view digits = std::string_view(text).substr(text.starts_with('+') ? 1 : 0);
    Number value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range)
      return fmt::format("{}: expected {}, {} to {}", text, kind, least, most);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
      return fmt::format("{}: expected {}, {}", text, kind, words);
    if (value >= least && value <= most) return {};
    // Also a bound that is not worth mentioning where it was passed.
    return fmt::format("{}: expected {}, {}", text, kind,
                       value > most ? fmt::format("{} to {}", least, most) : words);
  };
  return CLI::Validator(check, words, "");
}

}  // namespace

Flag& Flag::required() {
  option_->required();
  return *this;
}

Flag& Flag::range(std::int64_t least, std::int64_t most) {
  option_->check(
      range_validator<std::int64_t>(least, most, "a whole number", words_of(least, most)));
  return *this;
}

Flag& Flag::range(double least, double most, const std::string& words) {
  option_->check(range_validator(least, most, "a number", words));
  return *this;
}

Flag& Flag::repeatable() {
  option_->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Flag& Flag::one_word() {
  option_->allow_extra_args(false);
  return *this;
}

Flag& Flag::separated_by(char delimiter) {
  option_->delimiter(delimiter);
  return *this;
}

Flag& Flag::environment(const std::string& variable) {
  option_->envname(variable);
  return *this;
}

Flag& Flag::excludes(Flag other) {
  option_->excludes(other.option_);
  return *this;
}

Flag& Flag::group(const std::string& heading) {
  option_->group(heading);
  return *this;
}

Flag Flags::add_option(const std::string& names, std::string& value, const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}
Flag Flags::add_option(const std::string& names, std::filesystem::path& value,
                       const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}
Flag Flags::add_option(const std::string& names, int& value, const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}
Flag Flags::add_option(const std::string& names, std::int64_t& value, const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}
Flag Flags::add_option(const std::string& names, std::uint64_t& value, const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}
Flag Flags::add_option(const std::string& names, double& value, const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}
Flag Flags::add_option(const std::string& names, std::optional<std::string>& value,
                       const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}
Flag Flags::add_option(const std::string& names, std::optional<int>& value,
                       const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}
Flag Flags::add_option(const std::string& names, std::optional<double>& value,
                       const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}
Flag Flags::add_option(const std::string& names, std::vector<std::string>& value,
                       const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}
Flag Flags::add_option(const std::string& names, std::vector<double>& value,
                       const std::string& help) {
  return Flag(app_->add_option(names, value, help));
}

Flag Flags::add_option(const std::string& names, std::function<void(const std::string&)> read,
                       const std::string& help) {
  return Flag(app_->add_option_function<std::string>(names, read, help));
}

Flag Flags::add_flag(const std::string& names, bool& value, const std::string& help) {
  return Flag(app_->add_flag(names, value, help));
}

std::set<std::string> Flags::given() const {
  std::set<std::string> names;
  for (const CLI::Option* option : app_->get_options())
    if (option->count() > 0) names.insert(option->get_lnames().begin(), option->get_lnames().end());
  return names;
}

}  // namespace lathe::cli
