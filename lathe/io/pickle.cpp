#include "lathe/io/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"

namespace lathe::io {
namespace {

constexpr std::string_view kOrderedDict = "collections.OrderedDict";
// A value is some hundred bytes and may stand in one of the file.
constexpr std::size_t kMostValues = 4'000'000;
// Arguments are copied, and one tuple can be those of any number of calls.
constexpr std::size_t kMostArguments = 16;

}  // namespace

/// Runs one pickle's instructions.
class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, std::span<const std::string_view> known_names)
      : bytes_(bytes), known_names_(known_names) {}

  Pickle run() {
    for (;;) {
      opcode_at_ = at_;
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') break;
      step(opcode);
    }
    result_.root_ = pop();
    return std::move(result_);
  }
  std::size_t num_read() const { return at_; }

 private:
  using Id = Pickle::Id;
  using Kind = Pickle::Kind;
  using Value = Pickle::Value;

  template <typename... Arguments>
  [[noreturn]] void refuse(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    fail("byte {}: {}", opcode_at_, fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  // The instructions by their codes, as Python's pickletools lists them.
  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const int protocol = number<std::uint8_t>(); protocol < 2 || protocol > 5)
          refuse("protocol {}, expected 2 to 5", protocol);
        return;
      case 0x95:  // FRAME: only says how many bytes belong together
        take(8);
        return;
      case 'N':
        return push({.kind = Kind::None});
      case 0x88:
        return push({.kind = Kind::Bool, .integer = 1});
      case 0x89:
        return push({.kind = Kind::Bool, .integer = 0});
      case 'J':
        return push_integer(number<std::int32_t>());
      case 'K':
        return push_integer(number<std::uint8_t>());
      case 'M':
        return push_integer(number<std::uint16_t>());
      case 0x8a:
        return push_long(number<std::uint8_t>());
      case 'G':
        return push_real();
      case 'X':
        return push_text(number<std::uint32_t>());
      case 'T':
        return push_text(number<std::uint32_t>());
      case 'U':
        return push_text(number<std::uint8_t>());
      case 0x8c:
        return push_text(number<std::uint8_t>());
      case ')':
        return push({.kind = Kind::Tuple});
      case ']':
        return push({.kind = Kind::List});
      case '}':
        return push({.kind = Kind::Dictionary});
      case '(':
        marks_.push_back(stack_.size());
        return;
      case 't':
        return push({.kind = Kind::Tuple, .items = pop_marked()});
      case 0x85:
        return push_tuple(1);
      case 0x86:
        return push_tuple(2);
      case 0x87:
        return push_tuple(3);
      case 'a':
        return append({pop()});
      case 'e':
        return append(pop_marked());
      case 's': {
        const Id value = pop(), key = pop();
        return set_items({key, value});
      }
      case 'u':
        return set_items(pop_marked());
      case 'q':
        return remember(number<std::uint8_t>());
      case 'r':
        return remember(number<std::uint32_t>());
      case 0x94:
        return remember(static_cast<std::uint32_t>(memo_.size()));
      case 'h':
        return recall(number<std::uint8_t>());
      case 'j':
        return recall(number<std::uint32_t>());
      case 'c':
        return push_name();
      case 0x93: {  // STACK_GLOBAL
        const std::string name = text_of(pop()), module = text_of(pop());
        return push_known(module + "." + name);
      }
      case 'R':
        return call();
      case 'b':
        return build();
      case 'Q':
        return push({.kind = Kind::Outside, .items = {pop()}});
      default:
        refuse("instruction 0x{:02x} is refused: weights need none such", opcode);
    }
  }

  std::string_view take(std::size_t size) {
    if (size > bytes_.size() - at_) refuse("the pickle ends inside an instruction");
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == bytes_.npos) refuse("the pickle ends inside a name");
    const std::string_view found = take(end - at_);
    take(1);
    return found;
  }

  void push(Value value) {
    if (result_.values_.size() == kMostValues) refuse("more than {} values", kMostValues);
    stack_.push_back(static_cast<Id>(result_.values_.size()));
    result_.values_.push_back(std::move(value));
  }
  // What lies below the last mark belongs to whoever set it.
  std::size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  Id pop() {
    if (stack_.size() <= bottom()) refuse("takes a value where there is none");
    const Id top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Value& top(Kind kind, std::string_view expected) {
    if (stack_.size() <= bottom()) refuse("takes a value where there is none");
    Value& value = result_.values_[stack_.back()];
    if (value.kind != kind) refuse("has another value where {} is expected", expected);
    return value;
  }
  std::vector<Id> pop_marked() {
    if (marks_.empty()) refuse("goes back to a mark where there is none");
    std::vector<Id> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                          stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  const std::string& text_of(Id id) const {
    const Value& value = result_.values_[id];
    if (value.kind != Kind::Text) refuse("has another value where a text is expected");
    return value.text;
  }

  void push_integer(std::int64_t value) { push({.kind = Kind::Integer, .integer = value}); }
  // Two's complement, little end first, as many bytes as it takes.
  void push_long(std::size_t size) {
    const std::string_view digits = take(size);
    if (size > 16) refuse("an integer of {} bytes, expected at most 16", size);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(size, 8); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(digits[i])} << (8 * i);
    const bool is_negative = size > 0 && (static_cast<unsigned char>(digits[size - 1]) & 0x80) != 0;
    if (is_negative && size < 8) value |= ~std::uint64_t{0} << (8 * size);
    // The old files' first word has ten bytes; its low ones tell it well enough.
    push_integer(static_cast<std::int64_t>(value));
  }
  void push_real() {
    auto bits = number<std::uint64_t>();  // the big end first
    bits = __builtin_bswap64(bits);
    push({.kind = Kind::Real, .real = std::bit_cast<double>(bits)});
  }
  void push_text(std::size_t size) { push({.kind = Kind::Text, .text = std::string(take(size))}); }
  void push_tuple(std::size_t size) {
    std::vector<Id> items(size);
    for (std::size_t i = size; i-- > 0;) items[i] = pop();
    push({.kind = Kind::Tuple, .items = std::move(items)});
  }

  void append(const std::vector<Id>& items) {
    Value& list = top(Kind::List, "a list");
    list.items.insert(list.items.end(), items.begin(), items.end());
  }
  void set_items(const std::vector<Id>& items) {
    if (items.size() % 2 != 0) refuse("a dictionary gets a key without a value");
    Value& dictionary = top(Kind::Dictionary, "a dictionary");
    for (std::size_t i = 0; i < items.size(); i += 2)
      dictionary.pairs.emplace_back(items[i], items[i + 1]);
  }

  void remember(std::uint32_t slot) {
    if (stack_.size() <= bottom()) refuse("remembers a value where there is none");
    memo_[slot] = stack_.back();
  }
  void recall(std::uint32_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) refuse("recalls value {}, which it never kept", slot);
    stack_.push_back(found->second);
  }

  void push_name() {
    const std::string module(line());
    push_known(module + "." + std::string(line()));
  }
  void push_known(std::string name) {
    if (name != kOrderedDict && std::ranges::find(known_names_, name) == known_names_.end())
      refuse("names {}, which is neither a tensor nor a part of one: nothing of it was run",
             quote_text(name));
    push({.kind = Kind::Name, .text = std::move(name)});
  }
  void call() {
    const Id arguments = pop(), function = pop();
    if (result_.values_[arguments].kind != Kind::Tuple) refuse("calls with no tuple of arguments");
    if (result_.values_[function].kind != Kind::Name) refuse("calls what is no function");
    if (result_.values_[arguments].items.size() > kMostArguments)
      refuse("calls with more than {} arguments", kMostArguments);
    const std::string name = result_.values_[function].text;
    const std::vector<Id> items = result_.values_[arguments].items;
    if (name != kOrderedDict) return push({.kind = Kind::Call, .text = name, .items = items});
    if (!items.empty()) refuse("an OrderedDict with arguments, expected it to be filled later");
    push({.kind = Kind::Dictionary});
  }
  // What a dictionary of weights carries besides its items (`_metadata`) says which version of a
  // module wrote it.
  void build() {
    pop();
    top(Kind::Dictionary, "a dictionary");
  }

  std::string_view bytes_;
  std::span<const std::string_view> known_names_;
  std::size_t at_ = 0, opcode_at_ = 0;
  Pickle result_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, Id> memo_;
};

Pickle Pickle::parse(std::string_view& bytes, std::span<const std::string_view> known_names) {
  PickleMachine machine(bytes, known_names);
  Pickle result = machine.run();
  bytes.remove_prefix(machine.num_read());
  return result;
}

}  // namespace lathe::io
