#include "lathe/core/json_reader.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"

namespace lathe {
namespace {

using nlohmann::json;

// Reads `text` for the parser and tells how far it got, which the parser does not say for problems
// that only we see, such as a duplicate key.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, std::size_t* num_read) : at_(at), num_read_(num_read) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    ++at_;
    ++*num_read_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* num_read_;
};

// Builds the document from parser events, so that limits and duplicates are seen as they come.
class Builder final : public nlohmann::json_sax<json> {
 public:
  Builder(std::string_view text, std::string_view name, const JsonLimits& limits,
          std::int64_t first_line)
      : text_(text), name_(name), limits_(limits), first_line_(first_line) {}

  json build() {
    if (text_.size() > limits_.max_bytes)
      fail("{}{}is {} bytes long, more than the {} that are read as JSON", name_,
           name_.empty() ? "" : ": ", text_.size(), limits_.max_bytes);
    // The parser takes a NUL for the end of its input and would not look at what follows.
    if (const std::size_t nul = text_.find('\0'); nul != text_.npos) fail_at(nul + 1, "NUL byte");
    json::sax_parse(Cursor(text_.data(), &num_read_),
                    Cursor(text_.data() + text_.size(), &num_read_), this);
    return std::move(root_);
  }

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(std::int64_t value) override { return add(value) != nullptr; }
  bool number_unsigned(std::uint64_t value) override { return add(value) != nullptr; }
  bool number_float(double value, const std::string&) override { return add(value) != nullptr; }
  bool string(std::string& value) override { return add(std::move(value)) != nullptr; }
  bool binary(json::binary_t&) override { return false; }  // text never holds any
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& value) override {
    json& object = *open_.back();
    const auto [place, inserted] = object.get_ref<json::object_t&>().emplace(value, nullptr);
    if (!inserted) fail_at(num_read_, fmt::format("duplicate key {}", quote_text(value)));
    slot_ = &place->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& problem) override {
    fail_at(position, describe_json_problem(problem));
  }

 private:
  json* add(json value) {
    if (++num_values_ > limits_.max_values)
      fail_at(num_read_, fmt::format("more than {} values", limits_.max_values));
    json* place = &root_;
    if (!open_.empty() && open_.back()->is_array()) {
      open_.back()->push_back(nullptr);
      place = &open_.back()->back();
    } else if (!open_.empty()) {
      place = slot_;
    }
    *place = std::move(value);
    return place;
  }

  bool open(json container) {
    if (open_.size() >= limits_.max_depth)
      fail_at(num_read_, fmt::format("nested more than {} deep", limits_.max_depth));
    // Stays valid while open: the parent grows only after this child is closed.
    open_.push_back(add(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // `position` counts bytes from 1, as the parser does.
  [[noreturn]] void fail_at(std::size_t position, std::string_view problem) const {
    const std::string_view before =
        text_.substr(0, std::min(position > 0 ? position - 1 : 0, text_.size()));
    const auto line = first_line_ + std::count(before.begin(), before.end(), '\n');
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = before.size() - (newline == before.npos ? 0 : newline + 1) + 1;
    fail("{}{}{}:{}: {}", name_, name_.empty() ? "" : ":", line, column, problem);
  }

  std::string_view text_;
  std::string_view name_;
  const JsonLimits& limits_;
  std::int64_t first_line_;
  std::size_t num_read_ = 0;
  std::size_t num_values_ = 0;
  json root_;
  std::vector<json*> open_;
  json* slot_ = nullptr;
};

}  // namespace

json parse_json(std::string_view text, std::string_view name, const JsonLimits& limits,
                std::int64_t first_line) {
  return Builder(text, name, limits, first_line).build();
}

std::string describe_json_problem(const json::exception& problem) {
  // "[json.exception...] parse error at line 1, column 2: syntax error while parsing value -
  // invalid literal; last read: '...'": the token may be as long as the file and hold anything.
  std::string_view text = problem.what();
  if (text.find("number overflow") != text.npos) return "invalid JSON: number out of range";
  if (const std::size_t dash = text.find(" - "); dash != text.npos) text.remove_prefix(dash + 3);
  return fmt::format("invalid JSON: {}", text.substr(0, text.find("; last read")));
}

}  // namespace lathe
