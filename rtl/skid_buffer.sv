// Register slice. Cuts data, valid and ready between two blocks: no path goes through. Holds two
// beats, so that it passes one a cycle although `s_ready` does not look at `m_ready`.
module skid_buffer #(
    parameter int WIDTH = 8  // bits of a beat
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [WIDTH-1:0] s_data,
    input  logic             s_valid,
    output logic             s_ready,
    output logic [WIDTH-1:0] m_data,
    output logic             m_valid,
    input  logic             m_ready
);
  logic [WIDTH-1:0] spare;
  logic             has_spare;

  assign s_ready = !has_spare;
  always_ff @(posedge clk) begin
    if (!m_valid || m_ready) begin
      m_data    <= has_spare ? spare : s_data;
      m_valid   <= has_spare || s_valid;
      has_spare <= 1'b0;
    end else if (s_valid && s_ready) begin
      spare     <= s_data;
      has_spare <= 1'b1;
    end
    if (rst) begin
      m_valid   <= 1'b0;
      has_spare <= 1'b0;
    end
  end
endmodule
