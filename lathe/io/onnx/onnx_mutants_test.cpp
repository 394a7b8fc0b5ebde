// Models that are changed at random, in what they say and in the bytes they are written in: each
// becomes a model or is refused in one line. The whole import is run, as of a file: sizes, folding,
// what is recognised, names of layers.
//
// LATHE_ONNX_MUTANTS says how many there are, LATHE_ONNX_FIRST the number of the first, which
// decides what it is, and LATHE_ONNX_SEEDS a folder of more files to change.

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <random>

#include "lathe/io/onnx/export_onnx.h"
#include "lathe/io/onnx/load_onnx.h"
#include "lathe/io/onnx/onnx_op.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io::onnx {
namespace {

namespace fs = std::filesystem;

std::int64_t number_from_environment(const char* name, std::int64_t absent) {
  const char* const text = std::getenv(name);
  return text == nullptr ? absent : std::atoll(text);
}

class Changes {
 public:
  explicit Changes(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  bool once_in(std::size_t count) { return below(count) == 0; }
  template <typename List>
  auto& any(List& list) {
    return list[below(std::size(list))];
  }

  std::int64_t integer(std::int64_t before) {
    const std::int64_t others[] = {0,
                                   1,
                                   -1,
                                   2,
                                   -2,
                                   3,
                                   7,
                                   before ^ 1,
                                   before / 2,
                                   std::int64_t{1} << 20,
                                   std::int64_t{1} << 31,
                                   std::int64_t{1} << 40,
                                   std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min()};
    return any(others);
  }

  double real(double before) {
    const double others[] = {0,
                             -1,
                             before / 2,
                             -before,
                             1e30,
                             1e-30,
                             std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()};
    return any(others);
  }

  template <typename T>
  void list(std::vector<T>& values, T other) {
    if (values.empty() || once_in(3))
      values.push_back(std::move(other));
    else if (once_in(3))
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(below(values.size())));
    else
      any(values) = std::move(other);
  }

  void tensor(Tensor& tensor) {
    if (once_in(3)) {  // other sizes of as many elements
      std::vector<std::int64_t> dims = tensor.dims();
      if (dims.size() > 1 && once_in(2)) {
        std::swap(dims.front(), dims.back());
      } else if (once_in(2)) {
        dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(below(dims.size() + 1)), 1);
      } else {
        dims = {tensor.num_elements()};
      }
      tensor = tensor.reshaped(dims);
    } else if (once_in(3)) {  // another type
      const DType types[] = {DType::F32, DType::I64, DType::I32, DType::Bool, DType::F64};
      tensor = tensor.converted(any(types));
    } else if (once_in(4) || tensor.num_elements() == 0) {
      tensor = Tensor(tensor.dtype(), {static_cast<std::int64_t>(below(4))});
    } else if (tensor.dtype() == DType::I64) {
      std::int64_t& element = any_of(tensor.mutable_data<std::int64_t>());
      element = integer(element);
    } else if (tensor.dtype() == DType::F32) {
      float& element = any_of(tensor.mutable_data<float>());
      element = static_cast<float>(real(static_cast<double>(element)));
    }
  }

  void attribute(AttributeValue& value) {
    if (once_in(12))
      value = once_in(2) ? AttributeValue(integer(1)) : AttributeValue(std::vector{integer(1)});
    else if (auto* whole = std::get_if<std::int64_t>(&value))
      *whole = integer(*whole);
    else if (auto* number = std::get_if<double>(&value))
      *number = real(*number);
    else if (auto* text = std::get_if<std::string>(&value))
      *text = once_in(2) ? "" : *text + "s";
    else if (auto* wholes = std::get_if<std::vector<std::int64_t>>(&value))
      list(*wholes, integer(1));
    else if (auto* numbers = std::get_if<std::vector<double>>(&value))
      list(*numbers, real(1));
    else if (auto* array = std::get_if<Tensor>(&value))
      tensor(*array);
  }

  void node(OnnxGraph& graph) {
    OnnxNode& node = any(graph.nodes);
    switch (below(8)) {
      case 0: {
        const auto& all = OnnxOpRegistry::instance().all();
        node.op = std::next(all.begin(), static_cast<std::ptrdiff_t>(below(all.size())))->first;
        return;
      }
      case 1:  // what another one makes
        return list(node.inputs, name(graph));
      case 2:
        return list(node.outputs, once_in(2) ? std::string() : name(graph) + "s");
      case 3:
        if (!graph.inputs.empty()) return list(node.inputs, any(graph.inputs).name);
        return;
      case 4:
        if (!node.attributes.empty())
          node.attributes.erase(std::next(
              node.attributes.begin(), static_cast<std::ptrdiff_t>(below(node.attributes.size()))));
        return;
      case 5: {
        const char* const names[] = {"axis", "axes", "perm", "pads", "strides", "group", "to"};
        node.attributes[any(names)] = integer(1);
        return;
      }
      default:
        if (!node.attributes.empty())
          attribute(std::next(node.attributes.begin(),
                              static_cast<std::ptrdiff_t>(below(node.attributes.size())))
                        ->second);
    }
  }

  void value(OnnxValue& value) {
    const DType types[] = {DType::F32, DType::I64, DType::I32, DType::Bool, DType::F64};
    if (once_in(5))
      value.dtype = any(types);
    else if (once_in(8))
      value.has_shape = false;
    else if (value.shape.empty() || once_in(4))
      value.shape.push_back({.number = integer(2)});
    else if (once_in(4))
      value.shape.erase(value.shape.begin() +
                        static_cast<std::ptrdiff_t>(below(value.shape.size())));
    else if (once_in(3))
      any(value.shape) = {.number = {}, .name = once_in(2) ? "rows" : ""};
    else
      any(value.shape) = {.number = integer(4)};
  }

  void model(OnnxModel& model) {
    OnnxGraph& graph = model.graph;
    const std::size_t what = below(16);
    if (what == 0)
      model.opsets[""] = static_cast<std::int64_t>(below(30));
    else if (what <= 2 && !graph.inputs.empty())
      value(any(graph.inputs));
    else if (what == 3 && !graph.outputs.empty())
      value(any(graph.outputs));
    else if (what <= 7 && !graph.initializers.empty())
      tensor(any(graph.initializers).second);
    else if (what == 8 && graph.nodes.size() > 1)
      std::swap(any(graph.nodes).inputs, any(graph.nodes).inputs);
    else if (!graph.nodes.empty())
      node(graph);
  }

  void bytes(std::string& bytes) {
    for (std::size_t changes = 1 + below(4); changes > 0; --changes)
      any(bytes) = static_cast<char>(random_());
    if (once_in(8)) bytes.resize(below(bytes.size()));
  }

 private:
  std::string name(const OnnxGraph& graph) {
    const OnnxNode& node = graph.nodes[below(graph.nodes.size())];
    return node.outputs.empty() ? "" : node.outputs[below(node.outputs.size())];
  }
  template <typename T>
  T& any_of(std::span<T> values) {
    return values[below(values.size())];
  }

  std::mt19937_64 random_;
};

Attributes small(std::int64_t heads) {
  return {{"vocab_size", std::int64_t{20}},         {"hidden_size", std::int64_t{8}},
          {"num_hidden_layers", std::int64_t{1}},   {"num_attention_heads", heads},
          {"intermediate_size", std::int64_t{12}},  {"max_position_embeddings", std::int64_t{9}},
          {"num_key_value_heads", std::int64_t{1}}, {"initializer_range", 0.3}};
}

// They are not written.
bool has_subgraphs(const OnnxModel& model) {
  for (const OnnxNode& node : model.graph.nodes)
    for (const auto& [name, value] : node.attributes)
      if (std::holds_alternative<Subgraph>(value)) return true;
  return false;
}

using Models = std::vector<std::string>;

// Models of every kind that we write.
Models our_models() {
  Models models;
  const auto add = [&](const char* name, const char* task, Attributes config) {
    models.push_back(serialize_onnx(
        export_onnx(load_model(name, {.task = task, .config = std::move(config), .seed = 3}))
            .model));
  };
  Attributes bert = small(2);
  bert.erase("num_key_value_heads");
  add("bert-tiny", "classify", bert);
  add("bert-tiny", "mlm", bert);
  add("llama-tiny", "causal-lm", small(2));
  add("resnet20", "classify", {});
  return models;
}

Models models_in(const fs::path& folder) {
  Models models;
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".onnx") paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    try {
      const OnnxModel model = read_onnx(path);
      if (!has_subgraphs(model)) models.push_back(serialize_onnx(model));
    } catch (const UserError&) {  // of types that are not read
    }
  }
  return models;
}

// What is changed: ours, ONNX's own tests of its ops where they are installed, and what is asked
// for.
std::vector<Models> sound_models() {
  std::vector<Models> kinds{our_models()};
  const fs::path nodes = "/usr/share/libonnx-testdata/data";
  if (fs::is_directory(nodes)) kinds.push_back(models_in(nodes));
  if (const char* const folder = std::getenv("LATHE_ONNX_SEEDS"))
    kinds.push_back(models_in(folder));
  return kinds;
}

TEST(OnnxMutants, BecomeModelsOrOneLine) {
  const ScratchDirectory scratch;
  std::vector<Models> sound = sound_models();
  const std::int64_t first = number_from_environment("LATHE_ONNX_FIRST", 0);
  const std::int64_t count = number_from_environment("LATHE_ONNX_MUTANTS", 1000);
  std::int64_t accepted = 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    Changes changes(static_cast<std::uint64_t>(i));
    const std::string& whole = changes.any(changes.any(sound));
    std::string mutant = whole;
    if (changes.once_in(5)) {
      changes.bytes(mutant);
    } else {
      OnnxModel model = parse_onnx(whole, {});
      for (std::size_t left = 1 + changes.below(3); left > 0; --left) changes.model(model);
      mutant = serialize_onnx(model);
    }
    const fs::path path = scratch.write("m.onnx", mutant);
    try {
      read_onnx_model(path);
      ++accepted;
    } catch (const UserError& error) {
      EXPECT_EQ(error.message().find('\n'), std::string::npos) << i << ": " << error.message();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "mutant " << i << ": " << error.what();
    }
  }
  // Neither is everything refused nor nothing.
  EXPECT_GT(accepted, count / 100);
  EXPECT_LT(accepted, count);
}

}  // namespace
}  // namespace lathe::io::onnx
