#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/number_format.h"
#include "lathe/engine/executor.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

struct Packed {
  Graph graph;
  State state;
};

// Lookups in a table of 50 rows of 70 numbers, packed in a format.
Packed packed_table(const std::string& text) {
  constexpr std::int64_t kRows = 50, kColumns = 70;
  const std::shared_ptr<const NumberFormat> format = parse_format(text);
  std::vector<float> numbers(kRows * kColumns);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i * 2654435761u % 1999) / 999 - 1;
  const std::vector<float> scales(
      static_cast<std::size_t>(format->num_given_scales(kRows, kColumns)), 0.01f);
  const std::vector<float> zeros(scales.size(), 3.0f);
  const EncodedMatrix encoded = format->encode({.rows = kRows,
                                                .columns = kColumns,
                                                .x = numbers.data(),
                                                .scales = scales.data(),
                                                .zeros = zeros.data()});
  Packed packed;
  packed.state["codes"] =
      Tensor::from<std::uint8_t>({kRows, format->code_bytes(kColumns)}, encoded.codes);
  std::string states = fmt::format("codes = state() : u8[50,{}]\n", format->code_bytes(kColumns));
  std::string operands = "codes";
  const FormatFacts& facts = format->facts();
  const bool is_one = facts.granularity == Granularity::Tensor;
  if (encoded.scales.empty()) {
    operands += ", none";
  } else {
    const std::int64_t lines = is_one ? 1 : kRows, bytes = format->scale_bytes(kColumns);
    packed.state["local"] = Tensor::from<std::uint8_t>({lines, bytes}, encoded.scales);
    states += fmt::format("local = state() : u8[{},{}]\n", lines, bytes);
    operands += ", local";
  }
  if (!scales.empty()) {
    std::vector<std::int64_t> dims;
    if (!is_one) dims.push_back(kRows);
    if (std::ssize(scales) > kRows) dims.push_back(std::ssize(scales) / kRows);
    packed.state["scale"] = Tensor::from<float>(dims, scales);
    states += fmt::format("scale = state() : f32{}\n", to_text(dims));
    operands += ", scale";
    if (facts.has_zero_point) {
      packed.state["zero"] = Tensor::from<float>(dims, zeros);
      states += fmt::format("zero = state() : f32{}\n", to_text(dims));
      operands += ", zero";
    }
  }
  packed.graph = parse_graph(fmt::format(R"(
    symbols T
    ids = input() : i32[T]
    {}
    table = decode({}) {{format="{}", columns=70}} : f32[50,70]
    y = embedding(ids, table) : f32[T,70]
    output y <- y
  )",
                                         states, operands, text));
  return packed;
}

TEST(PackedEmbedding, LooksUpTheNumbersOfTheDecodedTable) {
  const Feed feed = {{"ids", Tensor::from<std::int32_t>({5}, {49, 0, 7, 7, 31})}};
  for (const char* const format :
       {"mxint:8", "mxint:4", "int:8,channel", "int:4,group=32,asymmetric", "int:8", "ternary",
        "nf4", "minifloat:e4m3", "fixed:6,3", "int:4,channel,asymmetric"}) {
    const Packed packed = packed_table(format);
    const Feed expected =
        make_executor(packed.graph, packed.state, {.device = "reference"})->run(feed);
    const auto executor = make_executor(packed.graph, packed.state, {.uses_integers = true});
    expect_identical(executor->run(feed), expected);
    const PlanReport report = executor->report();
    ASSERT_EQ(report.steps.size(), 1u) << format;
    EXPECT_EQ(report.steps[0].op, "packed_embedding") << format;
  }
}

TEST(PackedEmbedding, RefusesRowsThatAreNotThere) {
  const Packed packed = packed_table("mxint:8");
  const auto executor = make_executor(packed.graph, packed.state, {.uses_integers = true});
  for (const std::int32_t id : {-1, 50})
    EXPECT_THROW(executor->run({{"ids", Tensor::from<std::int32_t>({1}, {id})}}), UserError);
}

}  // namespace
}  // namespace lathe::engine
