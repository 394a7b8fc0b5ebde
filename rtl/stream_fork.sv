// Gives each beat to BRANCHES readers, each when it is ready: a branch that has taken the beat
// waits for the others behind its `done` bit. `m_valid` never looks at `m_ready`.
module stream_fork #(
    parameter int WIDTH    = 8,  // bits of a beat
    parameter int BRANCHES = 2
) (
    input  logic                      clk,
    input  logic                      rst,
    input  logic [         WIDTH-1:0] s_data,
    input  logic                      s_valid,
    output logic                      s_ready,
    output logic [BRANCHES*WIDTH-1:0] m_data,
    output logic [      BRANCHES-1:0] m_valid,
    input  logic [      BRANCHES-1:0] m_ready
);
  logic [BRANCHES-1:0] done;

  assign m_data  = {BRANCHES{s_data}};
  assign m_valid = {BRANCHES{s_valid}} & ~done;
  assign s_ready = &(m_ready | done);
  always_ff @(posedge clk) begin
    if (s_valid) done <= s_ready ? {BRANCHES{1'b0}} : done | m_ready;
    if (rst) done <= {BRANCHES{1'b0}};
  end
endmodule
