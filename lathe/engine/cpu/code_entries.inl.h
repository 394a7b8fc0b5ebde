// The table of a way to multiply whole numbers, for a file that has included all it lists.

extern const CodeKernels code_table;
const CodeKernels code_table = {.name = kName,
                                .grain = code_grain,
                                .encode = encode_rows,
                                .packed_size = code_packed_size,
                                .pack = code_pack,
                                .scratch_bytes = code_scratch_bytes,
                                .multiply = code_multiply,
                                .multiply_windows = kMultiplyWindows,
                                .sum_pixels = kSumPixels,
                                .widened_step = kWidenedStep,
                                .widened_columns = kWidenedColumns,
                                .widened_scratch_bytes = widened_scratch_bytes,
                                .multiply_widened = multiply_widened,
                                .attention_scratch_bytes = code_attention_scratch_bytes,
                                .attention = code_attention,
                                .attention_packed_bytes = code_attention_packed_bytes,
                                .attention_pack = code_attention_pack,
                                .attention_tile = code_attention_tile};
