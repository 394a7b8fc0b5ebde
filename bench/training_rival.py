"""PyTorch beside Lathe on the same training batches: BERT, AdamW, dropout, two pinned cores, one run.

    python3 bench/training_rival.py --lathe bench_training --model MODEL_DIR --tokens FILE

FILE is made by `bench_inference MODEL_DIR dump:DATA:FILE:BATCHES`. Prints a line per case with the
ratio of Lathe to PyTorch eager and to torch.compile, both in float32 with clipping and AdamW; on real
batches PyTorch pads each batch to its longest review and useful tokens are counted.
"""

import argparse
import json
import os
import subprocess
import time

import numpy as np

from inference_rival import padded, read_batches


def step(torch, model, optimizer, ids, mask, labels):
    loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def best_seconds(torch, model, batches, seconds, rounds_at_least=3):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.01, fused=True)
    for ids, mask, labels in batches:
        step(torch, model, optimizer, ids, mask, labels)
    best, total, rounds = float("inf"), 0.0, 0
    while total < seconds or rounds < rounds_at_least:
        start = time.perf_counter()
        for ids, mask, labels in batches:
            step(torch, model, optimizer, ids, mask, labels)
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

    def fresh():
        torch._dynamo.reset()
        return AutoModelForSequenceClassification.from_pretrained(arguments.model)

    def lathe(case):
        command = [arguments.lathe, arguments.model, case, "--threads", str(len(cores)),
                   "--seconds", str(arguments.seconds)]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    def report(name, first, second, tokens, eager, fast):
        ours = max(first, second, key=lambda line: line["tokens_per_second"])
        rate = ours["tokens_per_second"]
        line = {"case": name, "lathe_tokens_per_second": rate,
                "eager_tokens_per_second": round(tokens / eager),
                "ratio_to_eager": round(rate / (tokens / eager), 3),
                "plan_and_first_step_seconds": ours["plan_and_first_step_seconds"],
                "fma_peak_gflops_per_core": ours["fma_peak_gflops_per_core"]}
        if fast is not None:
            line["compile_tokens_per_second"] = round(tokens / fast)
            line["ratio_to_compile"] = round(rate / (tokens / fast), 3)
        print(json.dumps(line), flush=True)

    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(),
                      "cores": sorted(cores)}), flush=True)
    for rows, length in [(32, 256), (8, 512)]:
        ids = (1000 + np.arange(rows * length, dtype=np.int64) * 7919 % 29000).reshape(rows, length)
        batch = [(torch.from_numpy(ids), torch.ones(rows, length, dtype=torch.long),
                  torch.arange(rows) % 2)]
        first = lathe(f"full:{rows}x{length}")
        eager = best_seconds(torch, fresh(), batch, arguments.seconds)
        fast = None
        if not arguments.no_compile:
            fast = best_seconds(torch, torch.compile(fresh()), batch, arguments.seconds)
        second = lathe(f"full:{rows}x{length}")
        report(f"full {rows}x{length}", first, second, rows * length, eager, fast)

    real = read_batches(arguments.tokens)
    useful = sum(len(row) for rows in real for row in rows)
    batches = [padded(torch, rows) + (torch.arange(len(rows)) % 2,) for rows in real]
    first = lathe(f"packed:{arguments.tokens}")
    eager = best_seconds(torch, fresh(), batches, 0, rounds_at_least=1)
    second = lathe(f"packed:{arguments.tokens}")
    report(f"IMDb, {len(real)} batches of 32, useful tokens", first, second, useful, eager, None)


if __name__ == "__main__":
    main()
