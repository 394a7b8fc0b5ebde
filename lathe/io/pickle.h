#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe::io {

/// What a Python pickle describes, as plain records: nothing that it names is looked up, and
/// nothing is called.
///
/// A pickle is a program for a small machine with a stack. This one knows the instructions that
/// make values and refuses every other; a name outside a given list is refused where it stands, so
/// a `Call` is always of a function the reader of the records asked for.
class Pickle {
 public:
  using Id = std::uint32_t;
  enum class Kind : std::uint8_t {
    None,
    Bool,
    Integer,
    Real,
    Text,
    Tuple,
    List,
    Dictionary,  ///< an OrderedDict too
    Name,        ///< "module.name"
    Call,        ///< of the name in `text`
    Outside,     ///< a persistent id: what it stands for lies beside the pickle
  };
  struct Value {
    Kind kind = Kind::None;
    std::int64_t integer = 0;  ///< of an Integer, or 0 and 1 of a Bool
    double real = 0;
    std::string text = {};
    std::vector<Id> items = {};  ///< of tuples and lists, arguments of a call, the id of an Outside
    std::vector<std::pair<Id, Id>> pairs = {};  ///< keys and values of a dictionary
  };

  /// Reads the pickle that `bytes` begin with and moves them behind it. Errors name the byte.
  static Pickle parse(std::string_view& bytes, std::span<const std::string_view> known_names);

  const Value& root() const { return values_[root_]; }
  const Value& operator[](Id id) const { return values_[id]; }
  Id size() const { return static_cast<Id>(values_.size()); }

 private:
  friend class PickleMachine;
  // All values by number, so that one that holds itself is no cycle of owners.
  std::vector<Value> values_;
  Id root_ = 0;
};

}  // namespace lathe::io
