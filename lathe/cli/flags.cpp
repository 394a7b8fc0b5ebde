#include "lathe/cli/flags.h"

#include <CLI/App.hpp>

namespace lathe::cli {

Flag& Flag::required() {
  option_->required();
  return *this;
}

Flag& Flag::range(std::int64_t least, std::int64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag& Flag::range(double least, double most, const std::string& kind) {
  option_->check(CLI::Range(least, most, kind));
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
