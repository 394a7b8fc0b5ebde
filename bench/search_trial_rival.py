"""A trial of the third lab in plain PyTorch: what one point of a search costs on two cores.

    python3 bench/search_trial_rival.py --tokens FILE [--cores 0,1] [--train 20000] [--measure 5000] [--seconds 40]
                                        [--whole WHOLE.db] [--halved HALVED.db]

BERT-tiny as a classifier, every Linear in fixed point of a width and fraction of its own (weights,
biases and inputs, straight-through gradients), one epoch of AdamW with clipping, then an evaluation:
what the lab does for each trial, with padding to the longest row of each batch of 32. FILE holds real
batches, made by `bench_inference MODEL_DIR dump:DATA:FILE:BATCHES`. They are trained on once and
measured once, or as many of them as go into --seconds each; the time of a trial is what the rows of
--train and --measure take at that rate, reading, tokenizing and loading left out. Prints one line of
JSON.

Given the studies of our searches of the same trials on as many cores, one without halving (--whole)
and one with it (--halved), it says by which factors a trial of ours is cheaper, each by means over all
trials of its study: by speed (theirs over our whole trial), by early stopping (our whole trial over one
that may be given up) and by sharing (all trials over those that were not another study's or trial's).
"""

import argparse
import datetime
import json
import math
import os
import sqlite3
import time

import rival_race

WIDTHS, FRACTIONS = (8, 16, 32), (2, 4, 8)


def make_modules(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Round(torch.autograd.Function):
        """Fixed point to the nearest; gradients pass where nothing saturates."""

        @staticmethod
        def forward(ctx, x, width, fraction):
            scale = 2.0**fraction
            low, high = -(2.0 ** (width - 1)), 2.0 ** (width - 1) - 1
            code = torch.round(x * scale)
            ctx.save_for_backward((code >= low) & (code <= high))
            return code.clamp(low, high) / scale

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0], None, None

    class FixedLinear(nn.Linear):
        def __init__(self, inputs, outputs, point):
            super().__init__(inputs, outputs)
            self.width, self.fraction = point

        def forward(self, x):
            def rounded(y):
                return Round.apply(y, self.width, self.fraction)

            return functional.linear(rounded(x), rounded(self.weight), rounded(self.bias))

    class Layer(nn.Module):
        def __init__(self, hidden, heads, inner, points):
            super().__init__()
            self.heads = heads
            self.query, self.key, self.value, self.output = (
                FixedLinear(hidden, hidden, next(points)) for _ in range(4))
            self.up = FixedLinear(hidden, inner, next(points))
            self.down = FixedLinear(inner, hidden, next(points))
            self.first, self.second = nn.LayerNorm(hidden, 1e-12), nn.LayerNorm(hidden, 1e-12)
            self.drop = nn.Dropout(0.1)

        def forward(self, x, mask):
            rows, length, hidden = x.shape

            def split(y):
                return y.view(rows, length, self.heads, hidden // self.heads).transpose(1, 2)

            attended = functional.scaled_dot_product_attention(
                split(self.query(x)), split(self.key(x)), split(self.value(x)), attn_mask=mask,
                dropout_p=0.1 if self.training else 0.0)
            attended = attended.transpose(1, 2).reshape(rows, length, hidden)
            x = self.first(x + self.drop(self.output(attended)))
            return self.second(x + self.drop(self.down(functional.gelu(self.up(x)))))

    class Classifier(nn.Module):
        def __init__(self, points, hidden=128, heads=2, inner=512, layers=2, words=30522):
            super().__init__()
            points = iter(points)
            self.words = nn.Embedding(words, hidden)
            self.places = nn.Embedding(512, hidden)
            self.kind = nn.Parameter(torch.zeros(hidden))
            self.norm, self.drop = nn.LayerNorm(hidden, 1e-12), nn.Dropout(0.1)
            self.layers = nn.ModuleList(Layer(hidden, heads, inner, points) for _ in range(layers))
            self.pooler = FixedLinear(hidden, hidden, next(points))
            self.classifier = FixedLinear(hidden, 2, next(points))

        def forward(self, ids, mask):
            x = self.words(ids) + self.places(torch.arange(ids.shape[1])) + self.kind
            x = self.drop(self.norm(x))
            seen = mask[:, None, None, :].bool()
            for layer in self.layers:
                x = layer(x, seen)
            return self.classifier(self.drop(torch.tanh(self.pooler(x[:, 0]))))

    return Classifier


def read_trials(path):
    """Seconds of a study's trials that were trained, and how many had been trained before."""
    def seconds(start, end):
        return (datetime.datetime.fromisoformat(end) - datetime.datetime.fromisoformat(start)).total_seconds()

    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as base:
        rows = base.execute("SELECT trial_id, datetime_start, datetime_complete FROM trials"
                            " WHERE state IN ('COMPLETE', 'PRUNED')").fetchall()
        copied = {row[0] for row in base.execute(
            "SELECT trial_id FROM trial_user_attributes WHERE key = 'copied_from'")}
    return [seconds(*row[1:]) for row in rows if row[0] not in copied], len(copied)


def reasons(theirs, whole, halved):
    """By which factors our trials are cheaper."""
    result = {}
    whole_seconds, _ = read_trials(whole)
    mean = sum(whole_seconds) / len(whole_seconds)
    result["our_whole_trials"] = len(whole_seconds)
    result["our_whole_trial_seconds"] = mean
    result["by_speed"] = theirs / mean
    if halved:
        trained, copied = read_trials(halved)
        mean_halved = sum(trained) / len(trained)
        result["our_halved_trials"] = len(trained) + copied
        result["our_halved_trial_seconds"] = mean_halved
        result["by_early_stopping"] = mean / mean_halved
        result["by_sharing"] = (len(trained) + copied) / len(trained)
        result["in_all"] = result["by_speed"] * result["by_early_stopping"] * result["by_sharing"]
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--train", type=int, default=20000)
    parser.add_argument("--measure", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--whole")
    parser.add_argument("--halved")
    arguments = parser.parse_args()
    cores = {int(core) for core in arguments.cores.split(",")}
    rival_race.pin(cores)

    import torch

    torch.set_num_threads(len(cores))
    torch.manual_seed(0)
    torch.set_flush_denormal(True)  # layers that round to zero have tiny gradients
    points = [(WIDTHS[i % 3], FRACTIONS[i // 3 % 3]) for i in range(14)]
    model = make_modules(torch)(points)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01, fused=True)
    batches = [rival_race.padded(torch, rows) + (torch.arange(len(rows)) % 2,)
               for rows in rival_race.read_batches(arguments.tokens)]

    def train(ids, mask, labels):
        loss = torch.nn.functional.cross_entropy(model(ids, mask), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    def rows_per_second(work):
        """Of all batches, or of those that are done when the time is over; the first one twice."""
        work(*batches[0])
        rows, start = 0, time.perf_counter()
        for batch in batches:
            result = work(*batch)
            rows += len(batch[2])
            passed = time.perf_counter() - start
            if passed > arguments.seconds:
                break
        assert math.isfinite(result)
        return rows, rows / passed

    def measure(ids, mask, labels):
        return float((model(ids, mask).argmax(1) == labels).float().mean())

    model.train()
    trained, training = rows_per_second(train)
    model.eval()
    with torch.inference_mode():
        measured, measuring = rows_per_second(measure)
    trial = arguments.train / training + arguments.measure / measuring
    line = {"torch": torch.__version__, "threads": torch.get_num_threads(),
            "cores": sorted(os.sched_getaffinity(0)), "rows": [trained, measured],
            "training_rows_per_second": training, "measured_rows_per_second": measuring,
            "trial_seconds": trial}
    if arguments.whole:
        line.update(reasons(trial, arguments.whole, arguments.halved))
    print(json.dumps(line))


if __name__ == "__main__":
    main()
