"""PyTorch beside Lathe on the same batches: BERT forward on two pinned cores, in one run.

    python3 bench/inference_rival.py --lathe build/release/bench/bench_inference --model MODEL_DIR
        --tokens FILE [--cores 0,1]

FILE is made by `bench_inference MODEL_DIR dump:DATA:FILE:BATCHES`. Prints a line per case with the
ratio of Lathe to PyTorch eager and to torch.compile; both get the same cores, one after the other.
"""

import argparse
import json
import os
import subprocess
import time

import numpy as np


def read_batches(path):
    words = np.fromfile(path, dtype=np.int32)
    count, at, batches = int(words[0]), 1, []
    for _ in range(count):
        sequences = int(words[at])
        lengths = words[at + 1 : at + 1 + sequences]
        at += 1 + sequences
        rows = []
        for length in lengths:
            rows.append(words[at : at + length])
            at += int(length)
        batches.append(rows)
    return batches


def padded(torch, rows):
    longest = max(len(row) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = torch.from_numpy(row.astype(np.int64))
        mask[index, : len(row)] = 1
    return ids, mask


def best_seconds(torch, model, batches, seconds):
    with torch.inference_mode():
        for ids, mask in batches:
            model(input_ids=ids, attention_mask=mask)
        best, total, rounds = float("inf"), 0.0, 0
        while total < seconds or rounds < 3:
            start = time.perf_counter()
            for ids, mask in batches:
                model(input_ids=ids, attention_mask=mask)
            once = time.perf_counter() - start
            best, total, rounds = min(best, once), total + once, rounds + 1
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lathe", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--no-compile", action="store_true")
    arguments = parser.parse_args()
    cores = {int(core) for core in arguments.cores.split(",")}
    os.sched_setaffinity(0, cores)
    os.environ["OMP_NUM_THREADS"] = str(len(cores))

    import torch
    from transformers import AutoModelForSequenceClassification

    torch.set_num_threads(len(cores))
    model = AutoModelForSequenceClassification.from_pretrained(arguments.model).eval()
    compiled = None if arguments.no_compile else torch.compile(model, dynamic=None)

    def lathe(case):
        command = [arguments.lathe, arguments.model, case, "--threads", str(len(cores)),
                   "--seconds", str(arguments.seconds)]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    def report(name, ours, tokens, eager, fast):
        rate = ours["tokens_per_second"]
        line = {"case": name, "lathe_tokens_per_second": rate,
                "eager_tokens_per_second": tokens / eager,
                "ratio_to_eager": rate / (tokens / eager),
                "fma_peak_gflops_per_core": ours["fma_peak_gflops_per_core"]}
        if fast is not None:
            line["compile_tokens_per_second"] = tokens / fast
            line["ratio_to_compile"] = rate / (tokens / fast)
        print(json.dumps(line), flush=True)

    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(),
                      "cores": sorted(cores)}), flush=True)
    for rows, length in [(32, 256), (8, 512)]:
        ids = (1000 + np.arange(rows * length, dtype=np.int64) * 7919 % 29000).reshape(rows, length)
        batch = [(torch.from_numpy(ids), torch.ones(rows, length, dtype=torch.long))]
        first = lathe(f"padded:{rows}x{length}")
        eager = best_seconds(torch, model, batch, arguments.seconds)
        fast = best_seconds(torch, compiled, batch, arguments.seconds) if compiled is not None else None
        second = lathe(f"padded:{rows}x{length}")
        ours = max(first, second, key=lambda line: line["tokens_per_second"])
        report(f"padded {rows}x{length}", ours, rows * length, eager, fast)

    real = read_batches(arguments.tokens)
    useful = sum(len(row) for rows in real for row in rows)
    batches = [padded(torch, rows) for rows in real]
    first = lathe(f"packed:{arguments.tokens}")
    eager = best_seconds(torch, model, batches, arguments.seconds)
    second = lathe(f"packed:{arguments.tokens}")
    ours = max(first, second, key=lambda line: line["tokens_per_second"])
    report(f"IMDb, {len(real)} batches of 32, useful tokens", ours, useful, eager, None)


if __name__ == "__main__":
    main()
