"""PyTorch's scaled_dot_product_attention in bfloat16, forward and backward, for the sizes of
bench/cuda_attention.cpp: one call in a CUDA graph that is replayed many times in a row, timed with
events, medians. Each backend that runs, and the one that PyTorch takes by itself, by name."""
import contextlib
import statistics
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

SIZES = [(32, 8, 128, 64), (4, 16, 4096, 64)]


def microseconds(work, times):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    samples = []
    for _ in range(9):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(times):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        samples.append(begin.elapsed_time(end) * 1000 / times)
    return statistics.median(samples)


def main():
    if not torch.cuda.is_available():
        sys.exit("no GPU")
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    for size in SIZES:
        times = 5 if size[2] > 1000 else 100
        q, k, v, dy = (torch.randn(size, device="cuda", dtype=torch.bfloat16) for _ in range(4))
        for backend in (None, SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
            name = backend.name if backend is not None else (
                f"by itself ({SDPBackend(torch._fused_sdp_choice(q, k, v)).name})")

            def both():
                operands = [x.detach().requires_grad_() for x in (q, k, v)]
                torch.autograd.grad(scaled_dot_product_attention(*operands), operands, dy)

            with contextlib.nullcontext() if backend is None else sdpa_kernel(backend):
                try:
                    forward = microseconds(lambda: scaled_dot_product_attention(q, k, v), times)
                    backward = microseconds(both, times) - forward
                except RuntimeError as error:
                    print("x".join(map(str, size)), name, "does not run:", error)
                    continue
            print(f"{'x'.join(map(str, size))} {name}: forward {forward:.1f} us, "
                  f"backward {backward:.1f} us")


if __name__ == "__main__":
    main()
