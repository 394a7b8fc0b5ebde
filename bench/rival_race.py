"""What the rival scripts share: token files, batches as PyTorch pads them, and a fair race.

Every contender of a race runs the same number of rounds on the same cores at the same priority (a
child inherits both), block after block in turn, and its best round counts.
"""

import json
import os
import subprocess
import time

import numpy as np

BATCH = 32
# The models that Lathe makes up by name, as Hugging Face's configuration has them.
SIZES = {"bert-tiny": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
                       "intermediate_size": 512},
         "bert-base": {}}


def read_batches(path):
    """Lists of rows of ids, as `bench_inference MODEL_DIR dump:DATA:FILE:BATCHES` wrote them."""
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


def sorted_by_length(batches):
    """The same rows in batches of rows of about one length, which pads as little as can be."""
    rows = sorted((row for batch in batches for row in batch), key=len)
    return [rows[at : at + BATCH] for at in range(0, len(rows), BATCH)]


def padded(torch, rows):
    longest = max(len(row) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = torch.from_numpy(row.astype(np.int64))
        mask[index, : len(row)] = 1
    return ids, mask


def made_up_ids(rows, length):
    """The ids that the bench programs make up for full rows."""
    return (1000 + np.arange(rows * length, dtype=np.int64) * 7919 % 29000).reshape(rows, length)


def classifier(transformers, name, **options):
    """The model in a directory, or one of the sizes above with random weights."""
    if name not in SIZES:
        return transformers.AutoModelForSequenceClassification.from_pretrained(name, **options)
    config = transformers.BertConfig(**SIZES[name])
    return transformers.AutoModelForSequenceClassification.from_config(config, **options)


def shapes(arguments):
    return [tuple(map(int, shape.split("x"))) for shape in arguments.shapes.split(",") if shape]


def pin(cores):
    """Binds this process and its children to the cores, before anything starts threads."""
    os.sched_setaffinity(0, cores)
    os.environ["OMP_NUM_THREADS"] = str(len(cores))


def add_arguments(parser):
    parser.add_argument("--lathe", required=True, help="the bench program")
    parser.add_argument("--model", required=True, help="a Hugging Face directory, or one of "
                        + ", ".join(SIZES) + " with made-up weights")
    parser.add_argument("--tokens", help="a token file of real batches")
    parser.add_argument("--shapes", default="32x256,8x512", help="full batches, ROWSxLENGTH each")
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--blocks", type=int, default=3, help="turns of each contender")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of a turn")
    parser.add_argument("--precision", default="float32", help="Lathe's")
    parser.add_argument("--rivals", help="their names, separated by commas; else all")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")


class Lathe:
    """Our bench program as a contender. What else it prints is kept in `line`."""

    def __init__(self, arguments, case, threads):
        packed = getattr(arguments, "integers", None)
        self.command = [arguments.lathe, packed or arguments.model, case, "--threads", str(threads),
                        "--precision", arguments.precision]
        if packed:
            self.command.append("--integers")
        self.line = {}

    def block(self, rounds):
        done = subprocess.run(self.command + ["--rounds", str(rounds)], check=True, capture_output=True)
        self.line = json.loads(done.stdout)
        assert self.line["rounds"] == rounds
        return self.line["best_seconds"]


class Function:
    """A Python function that goes through all batches once, as a contender; called once to warm up."""

    def __init__(self, function):
        self.function = function
        self.is_warm = False

    def block(self, rounds):
        if not self.is_warm:
            self.function()
            self.is_warm = True
        best = float("inf")
        for _ in range(rounds):
            start = time.perf_counter()
            self.function()
            best = min(best, time.perf_counter() - start)
        return best


def race(case, tokens, contenders, blocks, rounds):
    """Prints one JSON line: each contender's rate, and Lathe's divided by it.

    `contenders` maps names to contenders, "lathe" among them, or to an exception: why a rival is
    absent. `tokens` counts useful tokens, the same for all. One that fails on the way is named too.
    """
    contenders = dict(contenders)
    best = {}
    for _ in range(blocks):
        for name, contender in contenders.items():
            if isinstance(contender, Exception):
                continue
            try:
                best[name] = min(best.get(name, float("inf")), contender.block(rounds))
            except Exception as problem:  # noqa: BLE001: one rival's failure is not the others'
                if name == "lathe":
                    raise
                contenders[name] = problem
                best.pop(name, None)
    ours = contenders["lathe"]
    line = {"case": case, "tokens": tokens, "rounds": blocks * rounds,
            "lathe_tokens_per_second": round(tokens / best["lathe"]),
            "fma_peak_gflops_per_core": ours.line.get("fma_peak_gflops_per_core")}
    if "plan_and_first_step_seconds" in ours.line:
        line["plan_and_first_step_seconds"] = ours.line["plan_and_first_step_seconds"]
    for name, contender in contenders.items():
        if name == "lathe":
            continue
        if isinstance(contender, Exception):
            line[name] = f"absent: {type(contender).__name__}: {str(contender).splitlines()[0]:.120}"
        else:
            line[name] = {"tokens_per_second": round(tokens / best[name]),
                          "ratio": round(best[name] / best["lathe"], 3)}
    print(json.dumps(line), flush=True)


def chosen(arguments, contenders):
    """Those that --rivals names."""
    if arguments.rivals is None:
        return contenders
    return {name: contenders[name] for name in arguments.rivals.split(",") if name in contenders}


def attempt(make):
    """What `make` returns, or the exception it ended with."""
    try:
        return make()
    except Exception as problem:  # noqa: BLE001: named in the output as the reason
        return problem
