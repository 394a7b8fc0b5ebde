#include "lathe/study/storages/time_text.h"

#include <charconv>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

namespace chrono = std::chrono;

// Reads a text from the left; every step fails with the whole text in the message.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), rest_(text) {}

  [[noreturn]] void give_up() const {
    fail("not a time: \"{}\", expected YYYY-MM-DD HH:MM:SS", text_);
  }
  bool is_at(std::string_view any) const {
    return !rest_.empty() && any.find(rest_.front()) != std::string_view::npos;
  }
  char take(std::string_view any) {
    if (!is_at(any)) give_up();
    const char taken = rest_.front();
    rest_.remove_prefix(1);
    return taken;
  }
  int number(std::size_t num_digits, int low, int high) {
    int value = 0;
    if (rest_.size() < num_digits) give_up();
    const char* end = rest_.data() + num_digits;
    if (std::from_chars(rest_.data(), end, value).ptr != end || value < low || value > high)
      give_up();
    rest_.remove_prefix(num_digits);
    return value;
  }
  // What follows a decimal point, in microseconds.
  chrono::microseconds fraction() {
    std::int64_t value = 0;
    std::int64_t unit = 100'000;
    for (; is_at("0123456789"); rest_.remove_prefix(1), unit /= 10)
      value += unit * (rest_.front() - '0');
    return chrono::microseconds(value);
  }
  bool is_done() const { return rest_.empty(); }

 private:
  std::string_view text_;
  std::string_view rest_;
};

}  // namespace

std::string to_text(Time time, char separator) {
  const auto day = chrono::floor<chrono::days>(time);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}.{:06}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     separator, clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count(), clock.subseconds().count());
}

Time parse_time(std::string_view text) {
  Reader reader(text);
  const chrono::year year(reader.number(4, 1, 9999));
  reader.take("-");
  const chrono::month month(static_cast<unsigned>(reader.number(2, 1, 12)));
  reader.take("-");
  const chrono::day day(static_cast<unsigned>(reader.number(2, 1, 31)));
  reader.take(" T");
  const chrono::hours hours(reader.number(2, 0, 23));
  reader.take(":");
  const chrono::minutes minutes(reader.number(2, 0, 59));
  reader.take(":");
  const chrono::seconds seconds(reader.number(2, 0, 59));
  chrono::microseconds rest(0);
  if (reader.is_at(".")) {
    reader.take(".");
    rest = reader.fraction();
  }
  if (reader.is_at("Z")) {
    reader.take("Z");
  } else if (!reader.is_done()) {
    const int sign = reader.take("+-") == '+' ? 1 : -1;
    rest -= sign * chrono::hours(reader.number(2, 0, 23));
    if (!reader.is_done()) {
      if (reader.is_at(":")) reader.take(":");
      rest -= sign * chrono::minutes(reader.number(2, 0, 59));
    }
  }
  const chrono::year_month_day date(year, month, day);
  if (!date.ok() || !reader.is_done()) reader.give_up();
  return chrono::sys_days(date) + hours + minutes + seconds + rest;
}

}  // namespace lathe::study
