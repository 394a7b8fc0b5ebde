"""cuBLAS bf16 through PyTorch beside `lathe bench mxint8`, in one run and timed alike: captured
graphs of calls that rotate over more copies of the weight than any cache holds.

    python bench/cuda_mxint8_rival.py [--lathe build/release/bin/lathe] [--sizes 4096,8192]
                                      [--batches 1,4,16] [--precision bf16] [--repeats 21]

Prints a line for each size and batch: PyTorch's median, Lathe's, and how much faster Lathe is."""

import argparse
import json
import statistics
import subprocess
import time

import torch


def time_linear(batch, size, repeats):
    """Seconds of x @ w.T in bfloat16, with a cold weight."""
    copies = max(2, (400 << 20) // (2 * size * size))
    weights = [torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(copies)]
    x = torch.randn(batch, size, device="cuda", dtype=torch.bfloat16)
    y = torch.empty(batch, size, device="cuda", dtype=torch.bfloat16)
    for weight in weights[:3]:
        torch.matmul(x, weight.t(), out=y)
    torch.cuda.synchronize()
    count = copies * max(1, 64 // copies)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(count):
            torch.matmul(x, weights[i % copies].t(), out=y)
    samples = []
    for i in range(-2, repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        if i >= 0:
            samples.append((time.perf_counter() - start) / count)
    return statistics.median(samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lathe", default="build/release/bin/lathe")
    parser.add_argument("--sizes", default="4096,8192")
    parser.add_argument("--batches", default="1,4,16")
    parser.add_argument("--precision", default="bf16", help="of Lathe's activations")
    parser.add_argument("--repeats", type=int, default=21)
    arguments = parser.parse_args()
    command = [arguments.lathe, "bench", "mxint8", "--device", "cuda", "--json", "--sizes",
               arguments.sizes, "--batches", arguments.batches, "--repeats", str(arguments.repeats),
               "--precision", arguments.precision]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    ours = {row["name"]: row["median_seconds"] for row in result["rows"]}
    copy = result["copy_bytes_per_second"]
    best = max((row["bytes"] / row["median_seconds"] for row in result["rows"]
                if row["name"].startswith("tile")), default=0)
    print(f"{result['device']}, PyTorch {torch.__version__}")
    print(f"copy {copy / 1e9:.0f} GB/s, decoding {best / 1e9:.0f} GB/s, {100 * best / copy:.1f} %")
    for size in map(int, arguments.sizes.split(",")):
        for batch in map(int, arguments.batches.split(",")):
            rival = time_linear(batch, size, arguments.repeats)
            packed = ours[f"linear mxint:8 {batch}x{size}x{size}"]
            print(f"{batch}x{size}x{size}: cuBLAS bf16 {rival * 1e6:.2f} us, packed "
                  f"{packed * 1e6:.2f} us, {rival / packed:.2f}x")


if __name__ == "__main__":
    main()
