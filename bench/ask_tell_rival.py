#!/usr/bin/python3
"""Times Optuna's ask and tell on the space of bench/ask_tell.cpp, beside ours in the same run.

    ask_tell_rival.py BENCH_ASK_TELL [--trials 500] [--timed 10]

72 categorical parameters: 24 layers, each with a type of number and, for two of three types, a
width of its own. Everything but the last trials is drawn at random and added as it is, so only the
timed ones cost Optuna anything. Prints milliseconds per trial for both and the ratio.
"""

import argparse
import math
import subprocess
import time
import warnings

warnings.simplefilter("ignore")
import optuna  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.CRITICAL)
TYPES, WIDTHS = ["int", "fixed", "binary"], [2, 4, 6, 8, 16]

PAIRS = [
    ("random", lambda: optuna.samplers.RandomSampler(seed=1)),
    ("tpe:multivariate=false,group=false", lambda: optuna.samplers.TPESampler(seed=1)),
    ("tpe:group=false", lambda: optuna.samplers.TPESampler(
        seed=1, multivariate=True, warn_independent_sampling=False)),
    ("tpe", lambda: optuna.samplers.TPESampler(
        seed=1, multivariate=True, group=True, warn_independent_sampling=False)),
]


def objective(trial):
    values = []
    for layer in range(24):
        kind = TYPES.index(trial.suggest_categorical(f"layer{layer:02}.type", TYPES))
        values.append(kind)
        if kind < 2:
            width = trial.suggest_categorical(f"layer{layer:02}.{TYPES[kind]}_width", WIDTHS)
            values.append(WIDTHS.index(width))
    return sum(math.cos(1.7 * value + i) for i, value in enumerate(values))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--timed", type=int, default=49, help="as many as bench_ask_tell times")
    options = parser.parse_args()
    past = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    past.optimize(objective, n_trials=options.trials - options.timed - 1)
    print(f"ms per ask and tell, {options.trials} trials of 72 categorical parameters")
    print(f"{'sampler':40} {'ours':>10} {'optuna ' + optuna.__version__:>14} {'ratio':>8}")
    for name, make in PAIRS:
        line = subprocess.run([options.bench, name, str(options.trials)], check=True,
                              capture_output=True, text=True).stdout
        ours = float(line.split()[-2])
        study = optuna.create_study(sampler=make())
        study.add_trials(past.trials)
        study.optimize(objective, n_trials=1)  # as ours, which reads the trials that are there
        start = time.perf_counter()
        study.optimize(objective, n_trials=options.timed)
        theirs = 1000 * (time.perf_counter() - start) / options.timed
        print(f"{name:40} {ours:10.3f} {theirs:14.2f} {theirs / ours:7.0f}x", flush=True)


if __name__ == "__main__":
    main()
