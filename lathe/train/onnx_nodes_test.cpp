// ONNX's own tests of its ops, from Debian's libonnx-testdata: a model of one node or a few,
// inputs, and what must come out. Those of ops that can be imported, with float32, int64 and bool
// alone, must agree on the CPU and by the reference; what cannot is in
// testing/onnx_nodes_left_out.txt with the reason, and must fail.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "lathe/engine/executor.h"
#include "lathe/io/onnx/import_onnx.h"
#include "lathe/io/onnx/onnx_op.h"

namespace lathe::train {
namespace {

namespace fs = std::filesystem;
using io::onnx::OnnxModel;

const fs::path kNodes = "/usr/share/libonnx-testdata/data/node";

bool is_in_scope(const OnnxModel& model) {
  const auto is_plain = [](const io::onnx::OnnxValue& value) {
    return value.dtype == DType::F32 || value.dtype == DType::I64 || value.dtype == DType::Bool;
  };
  for (const auto* values : {&model.graph.inputs, &model.graph.outputs})
    for (const io::onnx::OnnxValue& value : *values)
      if (!is_plain(value)) return false;
  for (const io::onnx::OnnxNode& node : model.graph.nodes)
    if (!node.domain.empty() || io::onnx::OnnxOpRegistry::instance().find(node.op) == nullptr)
      return false;
  return true;
}

// The difference that ONNX's own runner allows.
std::string compare(const Tensor& got, const Tensor& want) {
  if (got.dims() != want.dims())
    return fmt::format("shape {}, expected {}", to_text(got.dims()), to_text(want.dims()));
  if (got.dtype() != want.dtype())
    return fmt::format("{}, expected {}", name(got.dtype()), name(want.dtype()));
  for (std::int64_t i = 0; i < got.num_elements(); ++i) {
    const double a = got.at(i), b = want.at(i);
    const bool is_same = a == b || (std::isnan(a) && std::isnan(b)) ||
                         std::fabs(a - b) <= 1e-7 + 1e-3 * std::fabs(b);
    if (!is_same) return fmt::format("element {} is {}, expected {}", i, a, b);
  }
  return {};
}

// Runs one data set; what is wrong with it, or nothing.
std::string run(const OnnxModel& model, const fs::path& data, const char* device) {
  Feed inputs;
  for (std::size_t i = 0; i < model.graph.inputs.size(); ++i)
    inputs[model.graph.inputs[i].name] =
        io::onnx::read_onnx_tensor(data / fmt::format("input_{}.pb", i));
  const auto attempt = [&](const Feed& constants) -> std::string {
    io::onnx::ImportedGraph imported;
    try {
      imported = io::onnx::import_onnx(model, {.constants = constants});
    } catch (const UserError& error) {
      return error.message();
    }
    Feed feed;
    for (const NodeId id : imported.graph.nodes_of("input"))
      feed[imported.graph.name(id)] = inputs.at(imported.graph.name(id));
    const Feed outputs =
        engine::make_executor(imported.graph, imported.state, {.device = device})->run(feed);
    for (std::size_t i = 0; i < model.graph.outputs.size(); ++i) {
      const std::string& name = model.graph.outputs[i].name;
      const std::string difference = compare(
          outputs.at(name), io::onnx::read_onnx_tensor(data / fmt::format("output_{}.pb", i)));
      if (!difference.empty()) return fmt::format("output {}: {}", name, difference);
    }
    return {};
  };
  const std::string difference = attempt({});
  if (difference.find("must be known before") == std::string::npos) return difference;
  // Shapes and the like, which real files hold as constants, are inputs of these tests.
  Feed constants;
  for (const auto& [name, tensor] : inputs) {
    const bool is_data =
        name == model.graph.inputs[0].name && inputs.size() > 1 && tensor.rank() > 0;
    if (!is_data && (tensor.rank() <= 1 || tensor.dtype() != DType::F32)) constants[name] = tensor;
  }
  return attempt(constants);
}

std::map<std::string, std::string> left_out() {
  std::map<std::string, std::string> result;
  std::ifstream file(fs::path(LATHE_SOURCE_DIR) / "lathe/train/testing/onnx_nodes_left_out.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t colon = line.find(": ");
    EXPECT_NE(colon, std::string::npos) << line << ": expected a reason behind a colon";
    if (colon != std::string::npos) result[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return result;
}

TEST(OnnxNodes, AgreeWithOnnxsOwnTests) {
  if (!fs::is_directory(kNodes)) GTEST_SKIP() << "libonnx-testdata is not installed";
  std::map<std::string, std::string> expected = left_out();
  std::set<std::string> ops;
  int passed = 0, failed = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kNodes)) {
    const std::string name = entry.path().filename().string();
    OnnxModel model;
    try {
      model = io::onnx::read_onnx(entry.path() / "model.onnx");
    } catch (const UserError&) {
      continue;  // of types or control flow that are not in scope
    }
    if (!is_in_scope(model)) continue;
    // Older tests are of ops that opset 7 has unchanged.
    model.opsets[""] = std::max(model.opsets[""], io::onnx::kOldestOpset);
    if (model.graph.nodes.size() == 1) ops.insert(model.graph.nodes[0].op);
    std::string difference;
    for (const char* const device : {"reference", "cpu"})
      if (difference.empty()) {
        difference = run(model, entry.path() / "test_data_set_0", device);
        if (!difference.empty()) difference = fmt::format("{}: {}", device, difference);
      }
    (difference.empty() ? passed : failed) += 1;
    const bool is_expected = expected.erase(name) > 0;
    EXPECT_EQ(difference.empty(), !is_expected)
        << name << ": " << (is_expected ? "is left out, and passes" : difference);
  }
  EXPECT_TRUE(expected.empty()) << expected.begin()->first << " is left out, and no test of ours";
  RecordProperty("passed", passed);
  RecordProperty("failed", failed);
  fmt::print("{} of {} node tests pass, of {} ops\n", passed, passed + failed, ops.size());
  EXPECT_GE(ops.size(), 100u);
  EXPECT_GE(passed, 0.9 * (passed + failed));
}

// The page that users read says what can be imported.
TEST(OnnxNodes, AreNamedInTheDocumentation) {
  std::ifstream file(fs::path(LATHE_SOURCE_DIR) / "docs/onnx.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::string> names = io::onnx::OnnxOpRegistry::instance().names();
  for (const std::string& name : names)
    EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
  EXPECT_NE(page.find(fmt::format("These {} ops", names.size())), std::string::npos);
}

}  // namespace
}  // namespace lathe::train
