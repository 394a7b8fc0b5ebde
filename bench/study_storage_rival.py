#!/usr/bin/python3
"""Times Optuna at what bench/study_storage.cpp does, on the same disk and the same kind of server.

    study_storage_rival.py memory|sqlite [TRIALS] [PARAMETERS]
    study_storage_rival.py postgresql URL [TRIALS] [PARAMETERS] [WORKERS]

Random sampler, empty objective, categorical parameters, as many trials as bench_study_storage has by
default. URL names an empty database.
"""

import multiprocessing
import os
import sys
import time
import warnings

import optuna

warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def run_trials(study, count, num_parameters):
    def objective(trial):
        for i in range(num_parameters):
            trial.suggest_categorical(f"layer.{i}.width", [2, 4, 8, 16])
        return 0.5

    study.optimize(objective, n_trials=count)


def open_study(storage):
    sampler = optuna.samplers.RandomSampler(seed=None)
    return optuna.create_study(
        storage=storage, sampler=sampler, study_name="bench", direction="maximize", load_if_exists=True
    )


def milliseconds_per_trial(storage, num_trials, num_parameters):
    study = open_study(storage)
    run_trials(study, 5, num_parameters)
    start = time.perf_counter()
    run_trials(study, num_trials, num_parameters)
    return 1000 * (time.perf_counter() - start) / num_trials


def work(url, count, num_parameters):
    run_trials(open_study(url), count, num_parameters)


def main(words):
    kind = words.pop(0) if words else ""
    if kind in ("memory", "sqlite"):
        num_trials, num_parameters = [int(word) for word in words] + [500, 14][len(words) :]
        memory = milliseconds_per_trial(None, num_trials, num_parameters)
        print(f"memory: {memory:.3f} ms per trial of {num_parameters} parameters, {num_trials} trials")
        if kind == "memory":
            return
        path = f"bench_optuna_{os.getpid()}.db"
        try:
            sqlite = milliseconds_per_trial(f"sqlite:///{path}", num_trials, num_parameters)
        finally:
            os.remove(path)
        print(f"sqlite: {sqlite:.3f} ms per trial, {sqlite - memory:.3f} ms more than memory")
    elif kind == "postgresql" and words:
        url = words.pop(0)
        numbers = [int(word) for word in words] + [2000, 14, 8][len(words) :]
        num_trials, num_parameters, num_workers = numbers
        open_study(url)
        start = time.perf_counter()
        count = num_trials // num_workers
        workers = [
            multiprocessing.Process(target=work, args=(url, count, num_parameters))
            for _ in range(num_workers)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        seconds = time.perf_counter() - start
        total = count * num_workers
        print(
            f"postgresql: {total / seconds:.0f} trials/s: {num_workers} workers, {total} trials of "
            f"{num_parameters} parameters in {seconds:.2f} s"
        )
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
