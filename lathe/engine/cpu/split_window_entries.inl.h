// The table of what a file has included: see split_window_table.h.

extern const SplitWindowKernels split_window_table;
const SplitWindowKernels split_window_table = {
    .name = kName,
    .filters_size = window_filters_size,
    .pack = pack_window_filters,
    .scratch_bytes = window_scratch_bytes,
    .multiply = multiply_windows,
    .gradient_scratch_bytes = window_gradient_scratch_bytes,
    .add_gradient = add_window_gradient,
    .rounded_gradients_scratch_bytes = rounded_gradients_scratch_bytes,
    .add_rounded_gradients = add_rounded_gradients,
};
