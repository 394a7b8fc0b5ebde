#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

namespace lathe {

/// Facts about nodes that passes measured or computed: statistics, costs, hardware data.
///
/// A type T used as an annotation belongs to the module that defines it, has a name
/// `static constexpr const char* kAnnotation` and a function `std::string to_text(const T&)`.
class Annotations {
 public:
  Annotations() = default;
  Annotations(const Annotations& other) { *this = other; }
  Annotations& operator=(const Annotations& other) {
    if (this == &other) return *this;
    tables_.clear();
    for (const auto& [key, table] : other.tables_) tables_.emplace(key, table->clone());
    return *this;
  }
  Annotations(Annotations&&) = default;
  Annotations& operator=(Annotations&&) = default;

  template <typename T>
  std::map<std::int32_t, T>& table() {
    std::unique_ptr<TableBase>& slot = tables_[std::type_index(typeid(T))];
    if (!slot) slot = std::make_unique<Table<T>>();
    return static_cast<Table<T>&>(*slot).entries;
  }
  template <typename T>
  const T* find(std::int32_t node) const {
    const auto slot = tables_.find(std::type_index(typeid(T)));
    if (slot == tables_.end()) return nullptr;
    const auto& entries = static_cast<const Table<T>&>(*slot->second).entries;
    const auto entry = entries.find(node);
    return entry == entries.end() ? nullptr : &entry->second;
  }
  void forget_node(std::int32_t node) {
    for (auto& [key, table] : tables_) table->forget(node);
  }
  /// Drops every kind whose name `keep` does not hold.
  void keep_only(const std::vector<std::string>& keep) {
    std::erase_if(tables_, [&](const auto& entry) {
      for (const std::string& name : keep)
        if (name == entry.second->name()) return false;
      return true;
    });
  }
  /// (kind, text) of everything known about a node, sorted by kind.
  std::vector<std::pair<std::string, std::string>> describe(std::int32_t node) const {
    std::map<std::string, std::string> found;
    for (const auto& [key, table] : tables_)
      if (std::string text; table->describe(node, text)) found.emplace(table->name(), text);
    return {found.begin(), found.end()};
  }

 private:
  struct TableBase {
    virtual ~TableBase() = default;
    virtual std::unique_ptr<TableBase> clone() const = 0;
    virtual void forget(std::int32_t node) = 0;
    virtual std::string name() const = 0;
    virtual bool describe(std::int32_t node, std::string& text) const = 0;
  };
  template <typename T>
  struct Table final : TableBase {
    std::map<std::int32_t, T> entries;
    std::unique_ptr<TableBase> clone() const override { return std::make_unique<Table>(*this); }
    void forget(std::int32_t node) override { entries.erase(node); }
    std::string name() const override { return T::kAnnotation; }
    bool describe(std::int32_t node, std::string& text) const override {
      const auto entry = entries.find(node);
      if (entry == entries.end()) return false;
      text = to_text(entry->second);
      return true;
    }
  };
  std::map<std::type_index, std::unique_ptr<TableBase>> tables_;
};

}  // namespace lathe
