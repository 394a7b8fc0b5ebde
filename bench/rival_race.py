"""What the rival scripts share: token files, batches as PyTorch pads them, and a fair race.

Every contender of a race runs the same number of rounds on the same cores at the same priority (a
child inherits both), block after block in turn, and its best round counts; medians stand beside.
Each block begins with a pause, in which the threads of the contender before stop looking for work,
and with rounds for as many seconds for everybody that are not counted.
"""

import json
import os
import statistics
import subprocess
import time

import numpy as np

BATCH = 32
PAUSE = 0.2  # seconds; onnxruntime's and OpenMP's threads look for work for some milliseconds
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


def import_transformers():
    """transformers, or where it is not installed what these scripts need of it."""
    try:
        import transformers
    except ImportError:
        import plain_bert as transformers
    return transformers


def classifier(transformers, name, **options):
    """The model in a directory, or one of the sizes above with random weights."""
    if name not in SIZES:
        return transformers.AutoModelForSequenceClassification.from_pretrained(name, **options)
    transformers.set_seed(0)  # the same weights in every run
    config = transformers.BertConfig(**SIZES[name])
    return transformers.AutoModelForSequenceClassification.from_config(config, **options)


def save_made_up(model, arguments, folder):
    """Made-up weights go to a directory, from which Lathe reads the same ones."""
    if arguments.model in SIZES:
        arguments.model = os.path.join(folder, "made-up")
        model.save_pretrained(arguments.model)


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
    parser.add_argument("--warm-up", type=float, default=0.3, help="seconds before a turn's rounds")
    parser.add_argument("--precision", default="float32", help="Lathe's, or several: float32,bf16")
    parser.add_argument("--rivals", help="their names, separated by commas; else all")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")


class Lathe:
    """Our bench program as a contender. What else it prints is kept in `line`."""

    def __init__(self, lathe, model, case, threads, options):
        self.command = [lathe, model, case, "--threads", str(threads)] + options
        self.line = {}

    def block(self, rounds, warm_up):
        done = subprocess.run(self.command + ["--rounds", str(rounds), "--warm-up", str(warm_up)],
                              check=True, capture_output=True)
        self.line = json.loads(done.stdout)
        assert self.line["rounds"] == rounds
        return self.line["best_seconds"], self.line["median_seconds"]


def lathes(arguments, case, threads):
    """Lathe in each precision asked for, and in whole numbers where there is a packed model."""
    ways = {f"lathe {precision}": Lathe(arguments.lathe, arguments.model, case, threads,
                                        ["--precision", precision])
            for precision in arguments.precision.split(",") if precision}
    packed = getattr(arguments, "integers", None)
    if packed:
        for precision in arguments.precision.split(","):  # what attention and the like see
            name = "lathe int8" if precision == "float32" else f"lathe int8 {precision}"
            ways[name] = Lathe(arguments.lathe, packed, case, threads,
                               ["--integers", "--precision", precision])
    return ways


class Function:
    """A Python function that goes through all batches once, as a contender."""

    def __init__(self, function):
        self.function = function

    def block(self, rounds, warm_up):
        def once():
            start = time.perf_counter()
            self.function()
            return time.perf_counter() - start

        spent = 0.0
        while spent < warm_up:
            spent += once()
        seconds = [once() for _ in range(rounds)]
        return min(seconds), statistics.median(seconds)


def race(case, tokens, ours, rivals, arguments, rounds):
    """Prints one JSON line: each contender's rate, and that of each of ours divided by a rival's.

    A rival is a contender or an exception: why it is absent. `tokens` counts useful tokens, the
    same for all. One that fails on the way is named too.
    """
    rivals = dict(rivals)
    turns = {}
    for _ in range(arguments.blocks):
        for name, contender in {**ours, **rivals}.items():
            if isinstance(contender, Exception):
                continue
            time.sleep(PAUSE)
            try:
                done = contender.block(rounds, arguments.warm_up)
                turns.setdefault(name, []).append(done)
            except Exception as problem:  # noqa: BLE001: one rival's failure is not the others'
                if name in ours:
                    raise
                rivals[name] = problem
    best = {name: min(least for least, _ in done) for name, done in turns.items()}
    median = {name: statistics.median(middle for _, middle in done) for name, done in turns.items()}

    def rates(name):
        return {"tokens_per_second": round(tokens / best[name]), "median": round(tokens / median[name])}

    line = {"case": case, "tokens": tokens, "rounds": arguments.blocks * rounds}
    for name, contender in ours.items():
        line[name] = rates(name)
        for more in ("plan_and_first_step_seconds", "fma_peak_gflops_per_core"):
            if more in contender.line:
                line[name][more] = contender.line[more]
    for name, contender in rivals.items():
        if isinstance(contender, Exception):
            line[name] = f"absent: {type(contender).__name__}: {str(contender).splitlines()[0]:.120}"
            continue
        line[name] = rates(name)
        for way in ours:
            line[name][f"ratio of {way}"] = round(best[name] / best[way], 3)
            line[name][f"of medians, {way}"] = round(median[name] / median[way], 3)
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
