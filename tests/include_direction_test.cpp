// Modules may include only what stands above them in the table of docs/design.md: the rule that
// keeps the parts separable, checked on the #include lines themselves.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Modules = std::set<std::string, std::less<>>;

// Every module may include itself. `cli` is on top and may include everything.
const std::map<std::string, Modules, std::less<>> kMayInclude = {
    {"core", {}},
    {"report", {"core"}},
    {"numerics", {"core"}},
    {"ops", {"core", "numerics"}},
    {"models", {"core", "ops"}},
    {"data", {"core"}},
    {"io", {"core", "numerics", "ops", "models", "data"}},
    {"engine", {"core", "numerics", "ops"}},
    {"train", {"core", "numerics", "ops", "models", "io", "data", "engine"}},
    {"compress", {"core", "numerics", "ops", "models", "io", "data", "engine", "train"}},
    {"generate", {"core", "numerics", "ops", "models", "io", "data", "engine", "train"}},
    {"hardware",
     {"core", "numerics", "ops", "models", "io", "data", "engine", "train", "compress"}},
    {"study", {"core"}},
    {"experiment",
     {"core", "report", "numerics", "ops", "models", "io", "data", "engine", "train", "compress",
      "generate", "hardware", "study"}},
    {"search",
     {"core", "report", "numerics", "ops", "models", "io", "data", "engine", "train", "compress",
      "generate", "hardware", "study", "experiment"}},
    {"cli",
     {"core", "report", "numerics", "ops", "models", "io", "data", "engine", "train", "compress",
      "hardware", "study", "experiment", "search", "generate"}},
};

// What stands between the quotes of an #include line; empty for every other line.
std::string quoted_include(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == line.npos || line[start] != '#') return {};
  line.remove_prefix(start + 1);
  const std::size_t word = line.find_first_not_of(" \t");
  if (word == line.npos || !line.substr(word).starts_with("include")) return {};
  const std::size_t open = line.find('"');
  const std::size_t close = line.find('"', open + 1);
  if (open == line.npos || close == line.npos) return {};
  return std::string(line.substr(open + 1, close - open - 1));
}

// A backend is known by its record alone: what lies in lathe/engine/BACKEND is for that folder.
// Tests look inside, and `lathe doctor` says what the processor can do.
bool may_look_inside_backend(const std::string& file, const std::string& backend) {
  return file.starts_with(backend) || file.starts_with("engine/testing/") ||
         file.ends_with("_test.cpp") || file == "cli/commands/doctor.cpp";
}

// The folder of the backend that a header belongs to; empty for any other.
std::string backend_of(const std::string& included) {
  for (const char* backend : {"engine/cpu/", "engine/cuda/"})
    if (included.starts_with(std::string("lathe/") + backend)) return backend;
  return {};
}

std::string listed(const Modules& modules) {
  return modules.empty() ? "nothing of ours" : fmt::format("{}", fmt::join(modules, ", "));
}

// One line for every #include in the text of `file`, a path below lathe/, that breaks a rule.
std::vector<std::string> violations(const std::string& file, const std::string& text) {
  const std::string module = file.substr(0, file.find('/'));
  const auto rule = kMayInclude.find(module);
  if (rule == kMayInclude.end())
    return {fmt::format("lathe/{}: module \"{}\" has no rule in this test", file, module)};

  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string included = quoted_include(line);
    if (included.empty()) continue;
    const auto report = [&](const std::string& problem) {
      found.push_back(
          fmt::format("lathe/{}:{}: #include \"{}\": {}", file, number, included, problem));
    };
    // A path relative to the including file could leave the module unseen.
    if (!included.starts_with("lathe/") || included.find("/../") != included.npos) {
      report("headers of ours are included as \"lathe/MODULE/FILE\"");
      continue;
    }
    const std::string backend = backend_of(included);
    if (!backend.empty() && !may_look_inside_backend(file, backend)) {
      report("nobody but a backend itself includes its files");
      continue;
    }
    const std::string other = included.substr(6, included.find('/', 6) - 6);
    if (other == module || rule->second.contains(other)) continue;
    report(fmt::format("{} may include only {}", module, listed(rule->second)));
  }
  return found;
}

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(IncludeDirection, HoldsInEveryFile) {
  const fs::path root = fs::path(LATHE_SOURCE_DIR) / "lathe";
  int num_files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    const fs::path& path = entry.path();
    if (!entry.is_regular_file() || (path.extension() != ".h" && path.extension() != ".cpp"))
      continue;
    ++num_files;
    for (const std::string& line : violations(path.lexically_relative(root).string(), read(path)))
      ADD_FAILURE() << line;
  }
  EXPECT_GT(num_files, 100) << "of C++ were found under " << root;
}

TEST(IncludeDirection, NeverPointsBack) {
  for (const auto& [module, above] : kMayInclude)
    for (const std::string& other : above)
      EXPECT_FALSE(kMayInclude.at(other).contains(module)) << module << " and " << other;
}

TEST(IncludeDirection, IsReportedWithFileLineAndRule) {
  EXPECT_EQ(violations("data/reviews.cpp",
                       "#include \"lathe/data/reviews.h\"\n"
                       "#include <vector>\n"
                       "#include \"lathe/core/error.h\"\n"
                       "#include \"lathe/io/sha256.h\"\n"),
            std::vector<std::string>{"lathe/data/reviews.cpp:4: #include \"lathe/io/sha256.h\": "
                                     "data may include only core"});
  EXPECT_EQ(violations("core/size.h", "#  include \"lathe/ops/axes.h\""),
            std::vector<std::string>{"lathe/core/size.h:1: #include \"lathe/ops/axes.h\": "
                                     "core may include only nothing of ours"});
}

TEST(IncludeDirection, KeepsTheEngineApartFromItsBackends) {
  const std::string line = "#include \"lathe/engine/cpu/step.h\"";
  for (const char* file : {"engine/lower.cpp", "engine/passes/fold_constants.cpp", "train/run.cpp"})
    EXPECT_EQ(violations(file, line),
              std::vector<std::string>{fmt::format(
                  "lathe/{}:1: {}: nobody but a backend itself includes its files", file, line)});
  EXPECT_TRUE(violations("engine/cpu/steps/linear.cpp", line).empty());
  EXPECT_FALSE(violations("engine/cuda/steps/linear.cpp", line).empty());
  EXPECT_TRUE(violations("engine/lower_test.cpp", line).empty());
}

TEST(IncludeDirection, CannotBeAvoidedByRelativePaths) {
  EXPECT_EQ(violations("data/reviews.cpp", "#include \"../io/sha256.h\"").size(), 1U);
  EXPECT_EQ(violations("data/reviews.cpp", "#include \"lathe/core/../io/sha256.h\"").size(), 1U);
}

TEST(IncludeDirection, KnowsEveryModule) {
  EXPECT_EQ(violations("gadgets/gear.cpp", ""),
            std::vector<std::string>{
                "lathe/gadgets/gear.cpp: module \"gadgets\" has no rule in this test"});
}

}  // namespace
