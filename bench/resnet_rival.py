"""PyTorch and onnxruntime beside Lathe on the same images: ResNet forward, in one run.

    python3 bench/resnet_rival.py --lathe build/release/bench/bench_convolution [--depth 18|20]
        [--batches 128,1] [--size 224] [--cores 0,1] [--device cpu|cuda] [--onnx FILE]

The network is torchvision's ResNet-18, or the one of 20 layers for small images, written in plain
torch.nn with made-up weights. It is exported as ONNX, which Lathe and onnxruntime read. Rivals are
PyTorch eager, eager with channels last, and torch.compile with channels last; on a GPU in bfloat16,
compiled with CUDA graphs too. Prints a line per case with images a second and the ratio of Lathe's to each;
`difference` is how far Lathe's results are from PyTorch's.
"""

import argparse
import json
import os
import tempfile

import numpy as np

import rival_race
from rival_race import Function, attempt, race


class Lathe(rival_race.Lathe):
    """bench_convolution takes a number of images for a case."""


def network(torch, depth):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels, filters, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, filters, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(filters)
            self.conv2 = nn.Conv2d(filters, filters, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(filters)
            self.downsample = None
            if stride != 1 or channels != filters:
                self.downsample = nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False),
                                                nn.BatchNorm2d(filters))

        def forward(self, x):
            shortcut = x if self.downsample is None else self.downsample(x)
            y = torch.relu(self.bn1(self.conv1(x)))
            return torch.relu(self.bn2(self.conv2(y)) + shortcut)

    def stage(channels, filters, blocks, stride):
        return nn.Sequential(Block(channels, filters, stride),
                             *[Block(filters, filters, 1) for _ in range(blocks - 1)])

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            if depth == 18:
                self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False),
                                          nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
                widths, blocks, labels = [64, 128, 256, 512], 2, 1000
            else:
                self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, 1, 1, bias=False),
                                          nn.BatchNorm2d(16), nn.ReLU())
                widths, blocks, labels = [16, 32, 64], 3, 10
            stages, channels = [], widths[0]
            for index, filters in enumerate(widths):
                stages.append(stage(channels, filters, blocks, 1 if index == 0 else 2))
                channels = filters
            self.stages = nn.Sequential(*stages)
            self.fc = nn.Linear(channels, labels)

        def forward(self, x):
            return self.fc(self.stages(self.stem(x)).mean((2, 3)))

    torch.manual_seed(0)
    model = Network()
    for module in model.modules():  # statistics of a trained network are not 0 and 1
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.1, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return model.eval()


def made_up_images(batch, channels, size):
    """Those that bench_convolution makes up."""
    index = np.arange(batch * channels * size * size, dtype=np.int64)
    numbers = (index * 7919 % 1000).astype(np.float32) / np.float32(500) - np.float32(1)
    return numbers.reshape(batch, channels, size, size)


def export_onnx(torch, model, images, path):
    common = {"input_names": ["x"], "output_names": ["y"], "opset_version": 18}
    try:
        torch.onnx.export(model, (images,), path, dynamo=False,
                          dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, **common)
    except Exception:  # noqa: BLE001: versions differ in which exporter they still have
        torch.onnx.export(model, (images,), path, dynamo=True, external_data=False,
                          dynamic_shapes=({0: torch.export.Dim("batch")},), **common)


def onnx_session(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def forward(torch, model, images, device, autocast):
    def once():
        with torch.inference_mode(), torch.autocast(device, torch.bfloat16, enabled=autocast):
            model(images)
            if device == "cuda":
                torch.cuda.synchronize()

    return Function(once)


def begin(parser, rounds):
    """Adds what all races of images take, reads the arguments, and gives PyTorch their cores."""
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--blocks", type=int, default=2, help="turns of each contender")
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds of a turn")
    parser.add_argument("--warm-up", type=float, default=0.3, help="seconds before a turn's rounds")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--rivals", help="their names, separated by commas; else all")
    arguments = parser.parse_args()
    cores = {int(core) for core in arguments.cores.split(",")}
    rival_race.pin(cores)

    import torch

    threads = len(cores)
    torch.set_num_threads(threads)
    return arguments, torch, threads


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lathe", required=True, help="bench_convolution")
    parser.add_argument("--depth", type=int, default=18, choices=[18, 20])
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batches", default="128,1")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32", help="Lathe's")
    parser.add_argument("--integers", action="store_true",
                        help="also Lathe's convolutions of whole numbers of 8 bits")
    parser.add_argument("--onnx", help="a file to keep the exported network in")
    arguments, torch, threads = begin(parser, rounds=5)
    model = network(torch, arguments.depth)
    channels = 3 if arguments.depth == 18 else 1
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.onnx or os.path.join(folder, "network.onnx")
        if not os.path.exists(path):
            export_onnx(torch, model, torch.from_numpy(made_up_images(2, channels, arguments.size)),
                        path)
        session = attempt(lambda: onnx_session(path, threads))
        print(json.dumps({"torch": torch.__version__, "depth": arguments.depth,
                          "onnxruntime": str(attempt(lambda: __import__("onnxruntime").__version__)),
                          "threads": torch.get_num_threads(), "device": arguments.device}), flush=True)
        for batch in map(int, arguments.batches.split(",")):
            images = torch.from_numpy(made_up_images(batch, channels, arguments.size))
            with torch.inference_mode():
                expected = model(images[:1])[0, :10].tolist()
            device, autocast = arguments.device, arguments.device == "cuda"
            moved = model.to(device)
            last = network(torch, arguments.depth).to(device, memory_format=torch.channels_last)
            planes = images.to(device)
            turned = planes.to(memory_format=torch.channels_last)
            rivals = {"eager": forward(torch, moved, planes, device, autocast),
                      "eager channels_last": forward(torch, last, turned, device, autocast)}
            if not arguments.no_compile:
                options = {"mode": "reduce-overhead"} if device == "cuda" else {}
                rivals["compile channels_last"] = attempt(
                    lambda: forward(torch, torch.compile(last, **options), turned, device, autocast))
            if device == "cpu":
                feed = {"x": images.numpy()}
                rivals["onnxruntime"] = session if isinstance(session, Exception) else Function(
                    lambda feed=feed: session.run(["y"], feed))
            ours = {}
            for precision in arguments.precision.split(","):
                ours[f"lathe {precision}"] = Lathe(arguments.lathe, path, str(batch), threads,
                                                   ["--precision", precision, "--device", device])
            if arguments.integers:
                ours["lathe int8"] = Lathe(arguments.lathe, path, str(batch), threads,
                                           ["--integers", "--device", device])
            race(f"{batch} images of {arguments.size}", batch, ours,
                 rival_race.chosen(arguments, rivals), arguments, arguments.rounds)
            model.to("cpu")
            for name, contender in ours.items():
                difference = max(abs(a - b) for a, b in zip(contender.line["row"], expected))
                print(json.dumps({"contender": name, "difference": difference,
                                  "plan_and_first_run_seconds": contender.line["first_seconds"]}), flush=True)


if __name__ == "__main__":
    main()
