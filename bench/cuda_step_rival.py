#!/usr/bin/env python3
"""PyTorch's best against bench_cuda_step on one GPU: milliseconds a step, and the ratio.

    cuda_step_rival.py BENCH_CUDA_STEP [--only TEXT] [--seconds-for-rival S]

BERT as bench_cuda_step builds it, the same shapes and made-up ids. A training step is all of it: dropout
0.1, gradients clipped to norm 1, fused AdamW that can be captured; compiled by torch.compile and captured as one CUDA
graph, in float32, TF32 and bf16 (autocast). Inference the same without gradients, in bf16. Medians after warm-up; both
programs time from tensors on their side to a result on the host. Rows of PyTorch that would begin after the given
time are left out and said so [200].

Compiling takes torch.compile up to 40 s a row, so processes of their own compile all rows side by side first, nothing
timed, and what they leave in its cache is used.

Two times each: a step whose result is waited for before the next begins, and steps one behind another, each result
taken while the next step runs, as a training run takes them. PyTorch's inputs lie on the GPU; Lathe's are copied in
every step.
"""
import re
import subprocess
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = {"bert-tiny": (2, 128, 2), "bert-base": (12, 768, 12)}
TRAINING = [("bert-tiny", 8, 512), ("bert-tiny", 32, 512), ("bert-base", 32, 128)]
INFERENCE = [("bert-tiny", 32, 256), ("bert-tiny", 1, 128), ("bert-base", 16, 128)]
PRECISIONS = {"training": ("float32", "tf32", "bf16"), "inference": ("bf16",)}
MOST_COMPILERS = 6


class Layer(nn.Module):
    def __init__(self, width, heads, rate):
        super().__init__()
        self.heads, self.rate = heads, rate
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.dropout = nn.Dropout(rate)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        rate = self.rate if self.training else 0.0
        attended = F.scaled_dot_product_attention(q, k, v, dropout_p=rate)
        attended = attended.transpose(1, 2).reshape(rows, length, width)
        x = self.first(x + self.dropout(self.out(attended)))
        return self.second(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Bert(nn.Module):
    def __init__(self, layers, width, heads, rate=0.1):
        super().__init__()
        self.words, self.places = nn.Embedding(30522, width), nn.Embedding(512, width)
        self.kinds = nn.Embedding(2, width)
        self.norm, self.dropout = nn.LayerNorm(width, 1e-12), nn.Dropout(rate)
        self.layers = nn.ModuleList(Layer(width, heads, rate) for _ in range(layers))
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.words(ids) + self.places(places) + self.kinds(torch.zeros_like(ids))
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        return self.classifier(self.dropout(torch.tanh(self.pooler(x[:, 0]))))


def median_ms(start, finish, count, behind):
    """Milliseconds a step where `behind` later ones begin before a step's result is taken."""
    for i in range(behind + 5):
        start()
        if i >= behind:
            finish()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        start()
        finish()
        times.append((time.perf_counter() - begin) * 1e3)
    for _ in range(behind):
        finish()
    return sorted(times)[count // 2]


def captured(step):
    """The step as one CUDA graph; it has run before on a stream of its own, as PyTorch wants it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()
    return graph, result


def rival_step(model_name, rows, length, precision, is_training):
    """The step as a function, compiled when it is first called."""
    torch._dynamo.reset()
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    model = Bert(*SIZES[model_name]).cuda().train(is_training)
    ids = (1000 + torch.arange(rows * length) * 7919 % 29000).view(rows, length).cuda()
    labels = (torch.arange(rows) % 2).cuda()
    # Rounding weights once a step is autocast's cache, which a captured graph must not keep.
    autocast = torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16", cache_enabled=False)
    if is_training:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.01, fused=True, capturable=True)

        @torch.compile
        def loss_of(ids, labels):
            with autocast:
                logits = model(ids)
            return F.cross_entropy(logits.float(), labels)

        def step():
            optimizer.zero_grad(set_to_none=False)
            loss = loss_of(ids, labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
            optimizer.step()
            return loss
    else:
        forward = torch.compile(model)

        def step():
            with torch.no_grad(), autocast:
                return forward(ids).float()

    return step


def compile_ahead(rows):
    """Calls each row's step once in a process of its own, some at a time."""
    waiting = [[sys.executable, __file__, "--compile", *map(str, row)] for row in rows]
    running = []
    while waiting or running:
        running = [process for process in running if process.poll() is None]
        while waiting and len(running) < MOST_COMPILERS:
            running.append(subprocess.Popen(waiting.pop(0), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(0.2)


def rival(model_name, rows, length, precision, is_training):
    step = rival_step(model_name, rows, length, precision, is_training)  # the graph is in its memory
    graph, result = captured(step)

    # The result of every other step lies in the same memory of the host.
    slots = [(torch.empty_like(result, device="cpu", pin_memory=True), torch.cuda.Event()) for _ in range(2)]
    numbers = {"begun": 0, "finished": 0}

    def start():
        host, end = slots[numbers["begun"] % 2]
        numbers["begun"] += 1
        graph.replay()
        host.copy_(result.detach(), non_blocking=True)
        end.record()

    def finish():
        slots[numbers["finished"] % 2][1].synchronize()
        numbers["finished"] += 1

    count = 20 if model_name == "bert-base" else 100
    return median_ms(start, finish, count, 0), median_ms(start, finish, count, 1)


def ours(program, model_name, rows, length, precision, is_training):
    words = [program, model_name, f"{rows}x{length}", "--precision", precision]
    words += ["--steps", "20" if model_name == "bert-base" else "100"]
    if not is_training:
        words.append("--inference")
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    found = re.search(r"median ([0-9.]+) ms.*?another ([0-9.]+) ms.*?(\d+) graph nodes", done.stdout)
    if done.returncode != 0 or not found:
        return None, (done.stderr or done.stdout).strip().splitlines()[-1:]
    return (float(found[1]), float(found[2])), found[3]


def columns(theirs, mine, which):
    left = "left out" if theirs is None else f"{theirs[which]:.3f}"
    right = "failed" if mine is None else f"{mine[which]:.3f}"
    ratio = "" if None in (mine, theirs) else f"{theirs[which] / mine[which]:.2f}"
    return f"{left} | {right} | {ratio}"


def main():
    words = sys.argv[1:]
    if words[0] == "--compile":
        kind, model_name, rows, length, precision = words[1:]
        rival_step(model_name, int(rows), int(length), precision, kind == "training")()
        return torch.cuda.synchronize()
    program, only, limit = words[0], "", 200.0
    for name, value in zip(words[1::2], words[2::2]):
        if name == "--only":
            only = value
        elif name == "--seconds-for-rival":
            limit = float(value)
    start = time.perf_counter()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: compile and CUDA graph; medians, ms\n")
    print("| step | precision | PyTorch, waited for | Lathe | ratio | PyTorch, one behind another | Lathe | ratio | nodes |")
    print("| --- " * 9 + "|")
    cases = [("training", *case) for case in TRAINING] + [("inference", *case) for case in INFERENCE]
    cases = [(*case, precision) for case in cases for precision in PRECISIONS[case[0]]]
    cases = [case for case in cases if only in "{} {} {} x {} {}".format(*case)]
    # The longest first.
    compile_ahead(sorted(cases, key=lambda case: (case[1] == "bert-base", case[0] == "training"), reverse=True))
    for kind, model_name, rows, length, precision in cases:
        label = f"{kind} {model_name} {rows} x {length}"
        mine, nodes = ours(program, model_name, rows, length, precision, kind == "training")
        theirs = None
        if time.perf_counter() - start < limit:
            theirs = rival(model_name, rows, length, precision, kind == "training")
        print(f"| {label} | {precision} | {columns(theirs, mine, 0)} | {columns(theirs, mine, 1)} | {nodes} |",
              flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
