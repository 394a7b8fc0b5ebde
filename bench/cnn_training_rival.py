"""PyTorch beside Lathe on the same training steps of a small residual network, in one run.

    python3 bench/cnn_training_rival.py --lathe build/release/bench/bench_cnn_training
        [--batches 128,32] [--cores 0,1] [--no-compile]

The network is the one of 20 layers for images of 1x28x28 (Lathe's builder `resnet20`), float32, in
training mode with batch statistics, AdamW and clipping. Rivals are PyTorch eager, eager with
channels last, and torch.compile with channels last, all with fused AdamW; the latter two also with
products in bfloat16 (autocast), as Lathe's `bf16` has them. Prints a line per batch: images a
second of each (under tokens_per_second) and the ratio of Lathe's to it.
"""

import argparse
import json

import rival_race
from resnet_rival import begin, made_up_images, network
from rival_race import Function, attempt, race


class Lathe(rival_race.Lathe):
    """bench_cnn_training takes a number of images for a case."""


def training(torch, batch, is_last, is_compiled, is_bf16=False):
    model = network(torch, 20).train()
    images = torch.from_numpy(made_up_images(batch, 1, 28))
    if is_last:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    labels = torch.arange(batch) % 10
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    forward = torch.compile(model) if is_compiled else model

    def once():
        with torch.autocast("cpu", torch.bfloat16, enabled=is_bf16):
            loss = torch.nn.functional.cross_entropy(forward(images), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return Function(once)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lathe", required=True, help="bench_cnn_training")
    parser.add_argument("--batches", default="128")
    parser.add_argument("--precision", default="float32,bf16", help="Lathe's")
    arguments, torch, threads = begin(parser, rounds=10)
    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads()}), flush=True)
    for batch in map(int, arguments.batches.split(",")):
        rivals = {"eager": training(torch, batch, False, False),
                  "eager channels_last": training(torch, batch, True, False),
                  "eager channels_last bf16": training(torch, batch, True, False, True)}
        if not arguments.no_compile:
            for name, is_bf16 in {"": False, " bf16": True}.items():
                rivals["compile channels_last" + name] = attempt(
                    lambda batch=batch, is_bf16=is_bf16: training(torch, batch, True, True, is_bf16))
        ours = {f"lathe {precision}": Lathe(arguments.lathe, "resnet20", str(batch), threads,
                                            ["--precision", precision])
                for precision in arguments.precision.split(",")}
        race(f"training, {batch} images of 28", batch, ours,
             rival_race.chosen(arguments, rivals), arguments, arguments.rounds)


if __name__ == "__main__":
    main()
