#include "lathe/models/imported.h"

// Graphs that other programs made. Nothing is built: a graph is read, and stored from then on. Its
// inputs and outputs are the file's; where they are called as Hugging Face's are, texts can be
// read, and where `logits` come out there is something to train.
namespace lathe::models::imported {
namespace {

constexpr const char* kTexts = "imported";
constexpr const char* kNumbers = "imported-numbers";

Graph refuse_to_build(const AttributeReader&, const BuildOptions& options) {
  fail("an imported graph cannot be built anew for {}: it is what its file says", options.task);
}

TaskRecord task(const std::string& name, std::vector<std::string> inputs,
                std::vector<std::string> others, const std::string& label_layer = {}) {
  return {.name = name,
          .architecture = "Imported-" + name,
          .inputs = std::move(inputs),
          .optional_inputs = std::move(others),
          .label_layer = label_layer};
}

const Register texts{ModelFamily{
    .name = kTexts,
    .summary = "a graph from an ONNX file that reads texts",
    .reads = Reads::Tokens,
    .token_keys = {.vocabulary = "vocab_size",
                   .length = "max_position_embeddings",
                   .padding = "pad_token_id"},
    .tasks = {task("classify", {"input_ids", "attention_mask", "labels"}, {"token_type_ids"},
                   "classifier"),
              task("mlm", {"input_ids", "attention_mask", "labels"}, {"token_type_ids"}),
              task("causal-lm", {"input_ids", "attention_mask", "labels"}, {"token_type_ids"}),
              task("encode", {"input_ids", "attention_mask"}, {"token_type_ids"})},
    .config = {{"vocab_size", std::int64_t{0}, "number of ids"},
               {"max_position_embeddings", std::int64_t{512}, "tokens of the longest sequence"},
               {"pad_token_id", std::int64_t{0}, "the id that fills padded rows"}},
    .presets = {},
    .stand_ins = {{"attention_mask", "attention_mask", "input_ids", 1},
                  {"token_type_ids", "token_type_ids", "input_ids", 0}},
    .build = refuse_to_build,
}};

const Register numbers{ModelFamily{
    .name = kNumbers,
    .summary = "a graph from an ONNX file that reads rows of numbers or images",
    .reads = Reads::Image,
    .tasks = {task("classify", {}, {"labels"}, "classifier"), task("encode", {}, {"labels"})},
    .config = {},
    .presets = {},
    .build = refuse_to_build,
}};

}  // namespace
}  // namespace lathe::models::imported

namespace lathe::models {

const ModelFamily& imported_family(bool reads_texts) {
  return FamilyRegistry::instance().at(reads_texts ? imported::kTexts : imported::kNumbers,
                                       "model family");
}

bool is_imported(const ModelFamily& family) {
  return family.name == imported::kTexts || family.name == imported::kNumbers;
}

}  // namespace lathe::models
