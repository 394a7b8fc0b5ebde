"""PyTorch's attention in float32 on a CPU beside Lathe's: scaled_dot_product_attention, which PyTorch
fuses, and product, softmax, product, which it does not.

    python3 bench/attention_rival.py --lathe LATHE [--size 32x8x128x64] [--cores 0,1]

All take turns on the same cores, block after block; each of PyTorch's calls makes its result anew, as
Lathe's does. Prints one JSON line: medians of the blocks' medians in milliseconds, and how many times
as fast Lathe's fused form is.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import time


def median_of(work, repeats):
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples) * 1e3


def lathe_block(arguments, sizes, threads):
    names = ("--batch", "--heads", "--length", "--head-size")
    command = [arguments.lathe, "bench", "attention", "--json", "--quiet", "--threads", str(threads),
               "--repeats", str(arguments.repeats), "--warm-up", str(arguments.repeats)]
    for name, size in zip(names, sizes):
        command += [name, str(size)]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["rows"]
    return {"lathe " + row["name"]: row["median_seconds"] * 1e3 for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lathe", required=True)
    parser.add_argument("--size", default="32x8x128x64")
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=51)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.size.split("x")]
    cores = {int(core) for core in arguments.cores.split(",")}
    os.sched_setaffinity(0, cores)
    os.environ["OMP_NUM_THREADS"] = str(len(cores))
    import torch

    torch.set_num_threads(len(cores))
    # As a model has them: heads beside each other in a token's row.
    batch, heads, length, head = sizes
    q, k, v = (torch.randn(batch, length, heads, head).transpose(1, 2) for _ in range(3))

    def naive():
        scores = torch.matmul(q, k.transpose(-2, -1)) * (1 / math.sqrt(head))
        return torch.matmul(torch.softmax(scores, -1), v)

    def fused():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    blocks = []
    with torch.inference_mode():
        for _ in range(arguments.blocks):
            block = lathe_block(arguments, sizes, len(cores))
            for name, work in (("PyTorch fused", fused), ("PyTorch naive", naive)):
                median_of(work, arguments.repeats)
                block[name] = median_of(work, arguments.repeats)
            blocks.append(block)
    medians = {name: statistics.median(block[name] for block in blocks) for name in blocks[0]}
    print(json.dumps({"size": arguments.size, "cores": len(cores), "torch": torch.__version__,
                      **{name: {"ms": round(ms, 3), "ratio": round(ms / medians["lathe fused"], 2)}
                         for name, ms in medians.items()}}))


if __name__ == "__main__":
    main()
