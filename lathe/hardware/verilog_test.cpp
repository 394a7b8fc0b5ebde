#include "lathe/hardware/verilog.h"

#include <gtest/gtest.h>

namespace lathe::hardware {
namespace {

TEST(Verilog, LaysOutAModuleInColumns) {
  VerilogModule module{.comment = {"top: passes x on."},
                       .name = "top",
                       .ports = {{.name = "clk"},
                                 {.name = "x_data", .width = 8},
                                 {VerilogModule::Direction::Output, "y", 1}},
                       .nets = {{"a", 1}, {"long_name", 16}},
                       .instances = {{.comment = {"a slice"},
                                      .module = "slice",
                                      .name = "first",
                                      .parameters = {{"WIDTH", "8"}, {"W", "1"}},
                                      .connections = {{"clk", "clk"}, {"s_data", "x_data"}}},
                                     {.comment = {}, .module = "plain", .name = "second"}}};
  EXPECT_EQ(print(module), R"(// top: passes x on.
module top (
    input  logic       clk,
    input  logic [7:0] x_data,
    output logic       y
);
  logic        a;
  logic [15:0] long_name;

  // a slice
  slice #(
      .WIDTH(8),
      .W    (1)
  ) first (
      .clk   (clk),
      .s_data(x_data)
  );

  plain second (
  );
endmodule
)");
}

TEST(Verilog, MakesIdentifiersOfTheNamesOfModels) {
  EXPECT_EQ(verilog_identifier("bert.encoder.layer.0.query"), "bert_encoder_layer_0_query");
  EXPECT_EQ(verilog_identifier("a__b_"), "a_b");
  EXPECT_EQ(verilog_identifier("0.weight"), "n_0_weight");
  EXPECT_EQ(verilog_identifier("fork"), "n_fork");
  EXPECT_EQ(verilog_identifier("large"), "n_large");
  EXPECT_EQ(verilog_identifier("..."), "n");
}

}  // namespace
}  // namespace lathe::hardware
