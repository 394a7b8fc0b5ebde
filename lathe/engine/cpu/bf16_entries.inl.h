// The table of a way to multiply bfloat16 numbers, for a file that has included all of it.

extern const Bf16Kernels bf16_table;
const Bf16Kernels bf16_table = {.name = kName,
                                .grain = bf16_grain,
                                .reads_rows = reads_rows(kPairRows),
                                .packed_size = bf16_packed_size,
                                .pack = bf16_pack<float>,
                                .scratch_bytes = bf16_scratch_bytes,
                                .multiply = bf16_multiply,
                                .round = round_bf16,
                                .narrow = round_row,
                                .attention_scratch_bytes = bf16_attention_scratch_bytes,
                                .attention = bf16_attention,
                                .attention_packed_bytes = bf16_attention_packed_bytes,
                                .attention_pack = bf16_attention_pack,
                                .attention_tile = bf16_attention_tile};
