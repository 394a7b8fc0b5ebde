#!/usr/bin/python3
"""Compares the samplers' results with Optuna's on the same objectives.

    samplers_rival.py BENCH_SAMPLERS NB201.csv [--only TEXT] [--cache FILE] [--jobs N] [--quick]

Runs bench_samplers and Optuna (Debian's python3-optuna 3.1) with as many seeds each, and prints for
each pair the means, how often NAS-Bench-201's optimum was found, and the one-sided Mann-Whitney
p-value for "ours is worse": above 0.01 is a pass. Exits 1 if any pair fails. Optuna takes minutes,
so its results can be kept in a file.
"""

import argparse
import concurrent.futures
import csv
import json
import math
import os
import subprocess
import sys
import warnings

warnings.simplefilter("ignore")

# Objective, whether more is better, trials, seeds.
TABLES = ["cifar10_valid", "cifar100_valid", "imagenet16_valid"]
FUNCTIONS = ["branin", "hartmann6", "rosenbrock10"]
PROBLEMS = [(name, True, 200, 100) for name in TABLES]
PROBLEMS += [(name + noise, False, 100, 50) for noise in ("", "-noisy") for name in FUNCTIONS]
NOISE = {"branin": 2.0, "hartmann6": 0.1, "rosenbrock10": 5000.0}

# Ours, Optuna's, and which problems the pair is for ("tables", "functions").
PAIRS = [
    ("random", "random", ("tables",)),
    ("tpe:multivariate=false,group=false", "tpe", ("tables", "functions")),
    ("tpe", "tpe-multivariate", ("tables", "functions")),
    ("auto", "tpe-multivariate", ("tables", "functions")),
    ("cmaes", "cma-es", ("functions",)),
]


def make_sampler(name, seed):
    from optuna import samplers

    if name == "random":
        return samplers.RandomSampler(seed=seed)
    if name == "tpe":
        return samplers.TPESampler(seed=seed)
    if name == "tpe-multivariate":
        return samplers.TPESampler(seed=seed, multivariate=True, warn_independent_sampling=False)
    if name == "cma-es":
        return samplers.CmaEsSampler(seed=seed)
    raise ValueError(name)


def branin(trial):
    x, y = trial.suggest_float("x0", -5, 10), trial.suggest_float("x1", 0, 15)
    bend = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def hartmann6(trial):
    heights = [1.0, 1.2, 3.0, 3.2]
    widths = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14],
              [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    places = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
              [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
    x = [trial.suggest_float(f"x{i}", 0, 1) for i in range(6)]
    return -sum(h * math.exp(-sum(w * (a - 1e-4 * p) ** 2 for w, a, p in zip(ws, x, ps)))
                for h, ws, ps in zip(heights, widths, places))


def rosenbrock10(trial):
    x = [trial.suggest_float(f"x{i}", -5, 10) for i in range(10)]
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(9))


def read_table(path, column):
    with open(path, newline="") as file:
        return {tuple(int(row[f"e{i}"]) for i in range(6)): float(row[column])
                for row in csv.DictReader(file)}


def run_optuna(problem, sampler, seed, trials, path):
    import numpy
    import optuna

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    is_table = problem in TABLES
    table = read_table(path, problem) if is_table else None
    name = problem.removesuffix("-noisy")
    noise = numpy.random.RandomState(seed + 1000)
    truth = []

    def objective(trial):
        if is_table:
            value = table[tuple(trial.suggest_categorical(f"e{i}", [0, 1, 2, 3, 4])
                                for i in range(6))]
        else:
            value = {"branin": branin, "hartmann6": hartmann6, "rosenbrock10": rosenbrock10}[name](trial)
        truth.append(value)
        return value + (noise.normal(0, NOISE[name]) if problem.endswith("-noisy") else 0)

    study = optuna.create_study(direction="maximize" if is_table else "minimize",
                                sampler=make_sampler(sampler, seed))
    study.optimize(objective, n_trials=trials)
    return truth[study.best_trial.number]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("table")
    parser.add_argument("--only", default="", help="pairs and problems whose line contains this")
    parser.add_argument("--cache", help="a JSON file that keeps Optuna's results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true", help="ten seeds each")
    options = parser.parse_args()
    cache = {}
    if options.cache and os.path.exists(options.cache):
        with open(options.cache) as file:
            cache = json.load(file)
    from scipy.stats import mannwhitneyu

    failures = 0
    print(f"{'problem':22} {'ours':36} {'rival':18} {'mean':>12} {'rival':>12} {'hit':>5} {'rival':>5} {'p':>6}")
    pool = concurrent.futures.ProcessPoolExecutor(options.jobs)
    for problem, is_more_better, trials, seeds in PROBLEMS:
        kind = "tables" if problem in TABLES else "functions"
        seeds = min(seeds, 10) if options.quick else seeds
        for ours, rival, kinds in PAIRS:
            if kind not in kinds or options.only not in f"{problem} {ours} {rival}":
                continue
            key = f"{problem} {rival} {seeds} {trials}"
            if key not in cache:
                runs = [pool.submit(run_optuna, problem, rival, seed, trials, options.table)
                        for seed in range(seeds)]
                cache[key] = [run.result() for run in runs]
                if options.cache:
                    with open(options.cache, "w") as file:
                        json.dump(cache, file)
            output = subprocess.run([options.bench, problem, ours, "0", str(seeds), str(trials),
                                     options.table], check=True, capture_output=True, text=True)
            mine, theirs = [float(line) for line in output.stdout.split()], cache[key]
            p = mannwhitneyu(mine, theirs, alternative="less" if is_more_better else "greater").pvalue
            failures += p <= 0.01
            hits = ["", ""]
            if kind == "tables":
                best = max(read_table(options.table, problem).values())
                hits = [f"{sum(v >= best for v in vs) / len(vs):.2f}" for vs in (mine, theirs)]
            print(f"{problem:22} {ours:36} {rival:18} {sum(mine) / seeds:12.5g} {sum(theirs) / seeds:12.5g}"
                  f" {hits[0]:>5} {hits[1]:>5} {p:6.3f}{'  WORSE' if p <= 0.01 else ''}", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
