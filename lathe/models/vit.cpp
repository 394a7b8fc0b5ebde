#include <charconv>

#include "lathe/models/config_checks.h"
#include "lathe/models/encoder_layer.h"
#include "lathe/models/family.h"
#include "lathe/models/fit_config.h"

namespace lathe::models::vit {
namespace {

// The encoder of Dosovitskiy et al. 2021 as Hugging Face evaluates it: an image is cut into square
// patches, each made a token by one linear; a token of its own stands before them and is what the
// classifier looks at; positions are learned, and norms stand before attention and feed-forward
// part, with one more behind the last layer.
//
// Files hold that linear as a convolution [hidden, channels, patch, patch] whose windows do not
// overlap. Its state keeps that shape, and is read as a matrix.

struct Vit {
  std::int64_t hidden, layers, image, patch, channels;
  double initializer_range;
  EncoderSizes sizes;

  explicit Vit(const AttributeReader& config)
      : hidden(config.integer("hidden_size")),
        layers(config.integer("num_hidden_layers")),
        image(config.integer("image_size")),
        patch(config.integer("patch_size")),
        channels(config.integer("num_channels")),
        initializer_range(config.real("initializer_range")),
        sizes(read_encoder_sizes(config)) {
    sizes.has_qkv_bias = config.flag("qkv_bias");
    sizes.is_pre_norm = true;
    for (const char* const key : {"hidden_size", "num_attention_heads", "intermediate_size",
                                  "image_size", "patch_size", "num_channels"})
      check_size(key, config.integer(key));
    check_depth("num_hidden_layers", layers);
    check_heads(hidden, sizes.heads);
    if (const std::int64_t head = config.integer("head_dim");
        head != 0 && head != hidden / sizes.heads)
      fail("head_dim {} is not supported: expected {}, hidden_size by num_attention_heads", head,
           hidden / sizes.heads);
    if (image % patch != 0) fail("image_size {} is not a multiple of patch_size {}", image, patch);
    for (const double rate : {sizes.hidden_dropout, sizes.attention_dropout}) check_dropout(rate);
  }
};

// [B, channels, image, image] to [B, patches, channels * patch * patch], row by row of patches.
Value patches_of(ModuleBuilder& builder, const Vit& vit, const std::string& prefix, Value image) {
  Graph& graph = builder.graph();
  const Type& type = graph.type(image);
  const Size rows = type.axis(0);
  const std::int64_t side = vit.image / vit.patch, size = vit.patch;
  const auto reshape = [&](const std::string& name, Value x, Shape shape) {
    return Value{graph.add({.name = prefix + name,
                            .op = "reshape",
                            .inputs = {x},
                            .types = {{DType::F32, std::move(shape)}}}),
                 0};
  };
  const Value cut = reshape("cut", image, {rows, vit.channels, side, size, side, size});
  const Value turned = builder.add(prefix + "turn", "transpose", {cut},
                                   {{"axes", std::vector<std::int64_t>{0, 2, 4, 1, 3, 5}}});
  return reshape("patches", turned, {rows, side * side, vit.channels * size * size});
}

Value embeddings(ModuleBuilder& builder, const Vit& vit, Value image) {
  Graph& graph = builder.graph();
  const std::string prefix = "vit.embeddings.", projection = prefix + "patch_embeddings.projection";
  const Value patches = patches_of(builder, vit, prefix + "patch_embeddings.", image);
  const Value weight = builder.state(projection + ".weight",
                                     {vit.hidden, vit.channels, vit.patch, vit.patch}, "normal");
  const Value matrix{
      graph.add({.name = projection + ".matrix",
                 .op = "reshape",
                 .inputs = {weight},
                 .types = {{DType::F32, {vit.hidden, vit.channels * vit.patch * vit.patch}}}}),
      0};
  const Value bias = builder.state(projection + ".bias", {vit.hidden}, "zeros");
  const Value tokens = builder.add(projection, "linear", {patches, matrix, bias});
  const Value first = builder.state(prefix + "cls_token", {1, 1, vit.hidden}, "normal");
  const Size rows = graph.type(image).axis(0);
  const Value firsts{graph.add({.name = prefix + "first",
                                .op = "broadcast_to",
                                .inputs = {first},
                                .types = {{DType::F32, {rows, 1, vit.hidden}}}}),
                     0};
  const Value all =
      builder.add(prefix + "concat", "concat", {firsts, tokens}, {{"axis", std::int64_t{1}}});
  const Value positions = builder.state(prefix + "position_embeddings",
                                        {1, graph.type(all).axis(1), vit.hidden}, "normal");
  return builder.dropout(prefix + "dropout", builder.add(prefix + "add", "add", {all, positions}),
                         vit.sizes.hidden_dropout);
}

EncoderNames layer_names(std::int64_t layer) {
  const std::string prefix = fmt::format("vit.encoder.layer.{}.", layer);
  EncoderNames names = bert_layer_names(prefix);
  const std::string self = prefix + "attention.attention.";
  names.query = self + "query";
  names.key = self + "key";
  names.value = self + "value";
  names.attention = self + "attention";
  names.output_norm = prefix + "layernorm_before";
  names.narrow_norm = prefix + "layernorm_after";
  return names;
}

Graph build(const AttributeReader& config, const BuildOptions& options) {
  const Vit vit(config);
  if (options.num_labels < 1)
    fail("the number of labels is {}: expected 1 or more", options.num_labels);
  Graph graph;
  ModuleBuilder builder(graph, vit.initializer_range);
  const Value image = builder.input(
      "pixel_values", {DType::F32, {Size::symbol("B"), vit.channels, vit.image, vit.image}});
  Value x = embeddings(builder, vit, image);
  for (std::int64_t layer = 0; layer < vit.layers; ++layer)
    x = encoder_layer(builder, vit.sizes, layer_names(layer), x, kNone);
  x = builder.layer_norm("vit.layernorm", x, vit.sizes.eps);
  if (options.task == "classify")
    graph.set_output("logits",
                     builder.linear("classifier", first_token(builder, "vit.first_token", x),
                                    options.num_labels));
  else
    graph.set_output("last_hidden_state", x);
  return graph;
}

Attributes read_sizes(const Graph& graph, const Attributes&) {
  Attributes sizes;
  if (const auto rows = num_rows(graph, "vit.encoder.layer.0.intermediate.dense.weight"))
    sizes["intermediate_size"] = *rows;
  return sizes;
}

Attributes sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {{"num_hidden_layers", layers},
          {"hidden_size", hidden},
          {"num_attention_heads", heads},
          {"intermediate_size", 4 * hidden}};
}

// "1x28x28,p7,w64,l4,h4": the image, patches, width, layers and heads; what is missing is as in
// vit-tiny.
Attributes parse_arguments(std::string_view arguments) {
  const auto fail_at = [](std::string_view part) {
    fail(
        "\"{}\": expected vit:CHANNELSxSIZExSIZE,pPATCH,wWIDTH,lLAYERS,hHEADS, such as "
        "vit:1x28x28,p7,w64,l4,h4",
        part);
  };
  const auto number = [&](std::string_view part, std::string_view digits) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < 1) fail_at(part);
    return value;
  };
  Attributes config = sizes(12, 192, 3);
  for (std::size_t begin = 0; begin <= arguments.size();) {
    const std::size_t end = std::min(arguments.find(',', begin), arguments.size());
    const std::string_view part = arguments.substr(begin, end - begin);
    if (part.empty()) fail_at(part);
    const std::string_view digits = part.substr(1);
    if (begin == 0) {
      const std::size_t first = part.find('x'), second = part.find('x', first + 1);
      if (first == part.npos || second == part.npos) fail_at(part);
      config["num_channels"] = number(part, part.substr(0, first));
      config["image_size"] = number(part, part.substr(second + 1));
      if (number(part, part.substr(first + 1, second - first - 1)) !=
          std::get<std::int64_t>(config["image_size"]))
        fail_at(part);
    } else if (part[0] == 'p') {
      config["patch_size"] = number(part, digits);
    } else if (part[0] == 'w') {
      config["hidden_size"] = number(part, digits);
      config["intermediate_size"] = 4 * number(part, digits);
    } else if (part[0] == 'l') {
      config["num_hidden_layers"] = number(part, digits);
    } else if (part[0] == 'h') {
      config["num_attention_heads"] = number(part, digits);
    } else {
      fail_at(part);
    }
    begin = end + 1;
  }
  return config;
}

const Register registration{ModelFamily{
    .name = "vit",
    .summary = "transformer encoder of images, such as vit:1x28x28,p7,w64,l4,h4",
    .reads = Reads::Image,
    .tasks = {{.name = "classify",
               .architecture = "ViTForImageClassification",
               .inputs = {"pixel_values"},
               .optional_inputs = {"labels"},
               .label_layer = "classifier"},
              {.name = "encode", .architecture = "ViTModel", .inputs = {"pixel_values"}}},
    .config = {{"hidden_size", std::int64_t{768}, "width of a token"},
               {"num_hidden_layers", std::int64_t{12}, "encoder layers"},
               {"num_attention_heads", std::int64_t{12}, "heads of each attention"},
               {"intermediate_size", std::int64_t{3072}, "width inside the feed-forward part"},
               {"hidden_act", std::string("gelu"), "activation of the feed-forward part"},
               {"hidden_dropout_prob", 0.0, "dropout after embeddings, attention, feed-forward"},
               {"attention_probs_dropout_prob", 0.0, "dropout on attention weights"},
               {"initializer_range", 0.02, "standard deviation of fresh weights"},
               {"layer_norm_eps", 1e-12, "epsilon of layer norms"},
               {"image_size", std::int64_t{224}, "rows and columns of an image"},
               {"patch_size", std::int64_t{16}, "rows and columns of a patch"},
               {"num_channels", std::int64_t{3}, "channels of an image"},
               {"qkv_bias", true, "whether queries, keys and values have a bias"},
               {"head_dim", std::int64_t{0}, "width of a head; 0: hidden_size by heads"}},
    .presets = {{"vit-tiny", sizes(12, 192, 3)},
                {"vit-small", sizes(12, 384, 6)},
                {"vit-base", sizes(12, 768, 12)},
                {"vit-large", sizes(24, 1024, 16)}},
    .keys_without_default = {"head_dim"},
    // What masked patches are replaced with when a model learns from images alone.
    .naming = {.base_prefix = "vit.", .unread = {"embeddings.mask_token"}},
    .head_prefixes = {"vit.pooler.", "classifier."},
    .build = build,
    .read_sizes = read_sizes,
    .parse_arguments = parse_arguments,
}};

}  // namespace
}  // namespace lathe::models::vit
