#include "lathe/hardware/emission.h"

#include <gtest/gtest.h>

#include "lathe/hardware/testing/lab_design.h"

namespace lathe::hardware {
namespace {

TEST(Emission, IsReadable) {
  const Emission emission = emit(testing::lab_design());
  EXPECT_EQ(emission.sources(),
            (std::vector<std::string>{"rtl/matrix_vector.sv", "rtl/product_lane.sv", "rtl/ram.sv",
                                      "rtl/relu.sv", "rtl/requant.sv", "rtl/rom.sv", "lab.sv"}));
  EXPECT_EQ(
      emission.files.at("lab.sv"),
      R"(// lab: 2 blocks. A beat moves when valid and ready are high; element 0 stands in the low bits.
// input  x: 1 x 4 s8 (fixed:8,3), 4 a beat
// output act1: 1 x 8 s8 (fixed:8,3), 4 a beat
module lab (
    input  logic        clk,
    input  logic        rst,
    input  logic [31:0] x_data,
    input  logic        x_valid,
    output logic        x_ready,
    output logic [31:0] act1_data,
    output logic        act1_valid,
    input  logic        act1_ready
);
  logic [31:0] fc1_data;
  logic        fc1_valid;
  logic        fc1_ready;

  // fc1: y[8] = W x[4] + b, x s8 (fixed:8,3), 5-bit weights, 13-bit sums, nearest even >> 3,
  //   saturated to s8 (fixed:8,3)
  matrix_vector #(
      .BEATS     (1),
      .TILES     (2),
      .PI        (4),
      .PO        (4),
      .XW        (8),
      .XSIGNED   (1),
      .WW        (5),
      .AW        (13),
      .BIAS      (1),
      .MW        (0),
      .MULTIPLIER(1),
      .SHIFT     (3),
      .OW        (8),
      .OSIGNED   (1),
      .SYMMETRIC (0),
      .MODE      (0),
      .SCALED    (0),
      .BLOCK     (0),
      .KEPT_BLOCK(0),
      .WEIGHTS   ("memory/fc1_weights.mem"),
      .BIASES    ("memory/fc1_biases.mem")
  ) fc1 (
      .clk    (clk),
      .rst    (rst),
      .s_data (x_data),
      .s_valid(x_valid),
      .s_ready(x_ready),
      .m_data (fc1_data),
      .m_valid(fc1_valid),
      .m_ready(fc1_ready)
  );

  // act1: y = max(x, 0) in s8 (fixed:8,3)
  relu #(
      .LANES(4),
      .WIDTH(8)
  ) act1 (
      .clk    (clk),
      .rst    (rst),
      .s_data (fc1_data),
      .s_valid(fc1_valid),
      .s_ready(fc1_ready),
      .m_data (act1_data),
      .m_valid(act1_valid),
      .m_ready(act1_ready)
  );
endmodule
)");
}

TEST(Emission, GivesEveryPartAnIdentifierOfItsOwn) {
  Netlist netlist("top");
  StreamId x = netlist.add_input("a", {});
  for (const char* name : {"a.data", "A", "a_data_2"})
    x = netlist.add_single({.name = name, .block = "skid_buffer", .inputs = {x}});
  netlist.add_output(x);
  EXPECT_EQ(emit(netlist).stream_names,
            (std::vector<std::string>{"a", "a_data_v2", "A_v2", "a_data_2"}));
}

}  // namespace
}  // namespace lathe::hardware
