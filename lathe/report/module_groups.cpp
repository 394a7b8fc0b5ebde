#include "lathe/report/module_groups.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>

namespace lathe::report {
namespace {

// Names come out of files: a name of a million dots must not become a million nested calls.
constexpr int kMostParts = 24;

struct Part {
  std::string path;
  bool is_nameless = false;  // between two separators, or before a leading one
  bool is_number = false;
  bool leads_to_numbers = false;
  std::size_t num_names = 0;
  std::vector<std::size_t> members;
  std::vector<std::unique_ptr<Part>> children;
  std::map<std::string, Part*, std::less<>> child_by_path;
};

bool is_separator(char c) {
  return c == '.' || c == '/';
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Part& child(Part& part, std::string_view path) {
  if (const auto found = part.child_by_path.find(path); found != part.child_by_path.end())
    return *found->second;
  auto fresh = std::make_unique<Part>();
  fresh->path = path;
  fresh->is_nameless = path.size() == part.path.size() + 1;
  fresh->is_number = is_digits(path.substr(part.path.size(), path.size() - part.path.size() - 1));
  Part& result = *fresh;
  part.child_by_path.emplace(path, fresh.get());
  part.children.push_back(std::move(fresh));
  return result;
}

void insert(Part& root, std::string_view name, std::size_t index) {
  Part* part = &root;
  int parts = 0;
  // The last part is the name's own, even when it ends with a separator.
  for (std::size_t i = 0; i + 1 < name.size() && parts < kMostParts; ++i) {
    if (!is_separator(name[i])) continue;
    part = &child(*part, name.substr(0, i + 1));
    ++parts;
  }
  part->members.push_back(index);
}

// A name that is also a path (`loss` beside `loss/sum`) belongs with what is below it.
void lower_members(Part& part, std::span<const std::string> names) {
  std::erase_if(part.members, [&](std::size_t index) {
    for (const char separator : {'.', '/'}) {
      const auto found = part.child_by_path.find(names[index] + separator);
      if (found == part.child_by_path.end() || found->second->is_nameless) continue;
      found->second->members.push_back(index);
      return true;
    }
    return false;
  });
  for (const auto& below : part.children) lower_members(*below, names);
}

void count(Part& part) {
  part.num_names = part.members.size();
  for (const auto& below : part.children) {
    count(*below);
    part.num_names += below->num_names;
    part.leads_to_numbers |= below->leads_to_numbers || (below->is_number && below->num_names >= 2);
  }
}

bool deserves_a_group(const Part& part) {
  if (part.num_names < 2 || part.is_nameless) return false;
  if (part.members.empty() && part.children.size() == 1) return false;
  return part.is_number || !part.leads_to_numbers;
}

void fill(const Part& part, int depth_left, ModuleGroup& group) {
  group.members.insert(group.members.end(), part.members.begin(), part.members.end());
  for (const auto& below : part.children) {
    if (depth_left <= 0 || !deserves_a_group(*below)) {
      fill(*below, depth_left, group);
      continue;
    }
    ModuleGroup inner;
    inner.path = below->path;
    inner.title = below->path.substr(group.path.size());
    inner.title.pop_back();
    fill(*below, depth_left - 1, inner);
    group.groups.push_back(std::move(inner));
  }
}

void sort_members(ModuleGroup& group) {
  std::sort(group.members.begin(), group.members.end());
  for (ModuleGroup& inner : group.groups) sort_members(inner);
}

}  // namespace

std::string_view ModuleGroup::short_name(std::string_view name) const {
  if (name.size() > path.size() && name.starts_with(path)) return name.substr(path.size());
  // A name that is the path itself: `loss` in the group `loss/`.
  const std::size_t last = name.find_last_of("./", name.empty() ? 0 : name.size() - 1);
  return last == std::string_view::npos || path.empty() ? name : name.substr(last + 1);
}

ModuleGroup group_by_module(std::span<const std::string> names, int max_depth) {
  Part root;
  for (std::size_t i = 0; i < names.size(); ++i) insert(root, names[i], i);
  lower_members(root, names);
  count(root);
  ModuleGroup everything;
  fill(root, max_depth, everything);
  sort_members(everything);
  return everything;
}

}  // namespace lathe::report
