"""ResNet-18 forward on a GPU: Lathe beside PyTorch at its best, in one run.

    python3 bench/cuda_resnet_rival.py --lathe build/release/bench/bench_convolution
        [--batches 1,128] [--precisions bf16,tf32,float32] [--modes reduce-overhead,max-autotune]
        [--rivals NAME,NAME] [--onnx FILE] [--prepare]

--prepare only compiles, so that a race after it finds torch.compile's choices in its cache.

The network and its images are those of resnet_rival.py. Rivals have cuDNN's own search for the
fastest kernels on: eager, eager with channels last, that captured as a CUDA graph, the same with
batch norms folded into the convolutions, and torch.compile with channels last in each mode, weights
frozen. In bf16 their weights and images are bfloat16.

onnxruntime runs beside them where it has its CUDA provider, and is named as absent where not.

Three times of each: `on_gpu`, images that lie on the GPU, one run behind another; `carried`, images
of floats from the host's ordinary memory and the results back, each run waited for; `from_pinned`,
the same from memory that the GPU reads by itself. Prints a line for each contender, and one with the
ratio of the fastest rival's time to Lathe's. `difference` is the largest one from PyTorch's float32
results on a CPU, for the first ten results of the first image.
"""

import argparse
import copy
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np

from resnet_rival import export_onnx, made_up_images, network


def folded(torch, model):
    """The network without batch norms, as inference has it."""
    from torch.fx.experimental.optimization import fuse

    return fuse(copy.deepcopy(model).eval())


def captured(torch, model, images):
    """A function that replays the network's launches on these images."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.inference_mode():
        for _ in range(3):
            model(images)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        result = model(images)

    def run(given):
        if given is not images:
            images.copy_(given, non_blocking=True)
        graph.replay()
        return result

    return run


def called(torch, model):
    def run(images):
        with torch.inference_mode():
            return model(images)

    return run


def medians(torch, run, on_gpu, images, pinned):
    """Seconds of all ways of timing."""
    for _ in range(5):
        run(on_gpu)
    torch.cuda.synchronize()
    start = time.perf_counter()
    run(on_gpu)
    torch.cuda.synchronize()
    count = max(5, min(400, int(0.05 / (time.perf_counter() - start))))
    behind = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(count):
            run(on_gpu)
        torch.cuda.synchronize()
        behind.append((time.perf_counter() - start) / count)

    def carry(host):
        moved = host.to("cuda", non_blocking=True).to(dtype=on_gpu.dtype)
        if on_gpu.is_contiguous(memory_format=torch.channels_last):
            moved = moved.contiguous(memory_format=torch.channels_last)
        run(moved).float().cpu()

    return {"on_gpu": statistics.median(behind), "carried": timed(lambda: carry(images)),
            "from_pinned": timed(lambda: carry(pinned))}


def timed(function):
    """The median of fifteen calls, each waited for, after two."""
    seconds = []
    for _ in range(17):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[2:])


def rivals_of(torch, model, images, precision, modes):
    """Makers of each rival, with the images it takes."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    own = copy.deepcopy(model).to("cuda", dtype)
    last = copy.deepcopy(own).to(memory_format=torch.channels_last)
    planes = images.to("cuda", dtype)
    turned = planes.to(memory_format=torch.channels_last)
    held, again = turned.clone(), turned.clone()  # where a captured run reads its images
    makers = {
        "eager": (lambda: called(torch, own), planes),
        "eager channels_last": (lambda: called(torch, last), turned),
        "graph channels_last": (lambda: captured(torch, last, held), held),
        "graph channels_last folded": (lambda: captured(
            torch, folded(torch, last).to(memory_format=torch.channels_last), again), again),
    }
    for mode in modes:
        makers[f"compile {mode}"] = (
            lambda mode=mode: called(torch, torch.compile(last, mode=mode, fullgraph=True)), turned)
    return makers


def onnxruntime_on_gpu(torch, path, images, precision):
    """A function as the others are, of onnxruntime's CUDA provider; it reads and writes in place."""
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        raise RuntimeError("onnxruntime has no CUDA provider here, only "
                           + ", ".join(onnxruntime.get_available_providers()))
    session = onnxruntime.InferenceSession(path, providers=[(
        "CUDAExecutionProvider", {"use_tf32": int(precision == "tf32"),
                                  "cudnn_conv_algo_search": "EXHAUSTIVE"})])
    if "CUDAExecutionProvider" not in session.get_providers():
        raise RuntimeError("onnxruntime cannot load its CUDA provider here")
    result = torch.empty(images.shape[0], 1000, device="cuda")

    def run(given):
        binding = session.io_binding()
        binding.bind_input("x", "cuda", 0, np.float32, tuple(given.shape), given.data_ptr())
        binding.bind_output("y", "cuda", 0, np.float32, tuple(result.shape), result.data_ptr())
        torch.cuda.synchronize()
        session.run_with_iobinding(binding)
        return result

    return run


def lathe(arguments, path, batch, precision):
    done = subprocess.run([arguments.lathe, path, str(batch), "--device", "cuda", "--precision",
                           precision, "--rounds", "15", "--warm-up", "0.2", "--threads",
                           str(arguments.threads)],
                          capture_output=True, check=False, text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-300:])
    return json.loads(done.stdout)


class Table:
    """The contenders' times of one batch in one precision."""

    def __init__(self, batch, size, precision):
        self.case = {"batch": batch, "precision": precision}
        self.title = f"{batch} x 3 x {size} x {size} {precision}"
        self.times = {}

    def add(self, name, times, ready, difference):
        self.times[name] = times
        print(json.dumps({**self.case, "contender": name,
                          **{f"{way}_us": round(time * 1e6, 1) for way, time in times.items()},
                          "ready_seconds": round(ready, 2), "difference": difference}), flush=True)

    def leave_out(self, name, error):
        print(json.dumps({**self.case, "contender": name, "error": str(error)[:200]}), flush=True)

    def print_ratios(self):
        ours = self.times.pop("lathe", {})
        for way, own in ours.items():
            rivals = {name: times[way] for name, times in self.times.items()}
            if not rivals:
                continue
            name = min(rivals, key=rivals.get)
            print(f"{self.title} {way}: lathe {own * 1e6:.1f} us, best rival {name} "
                  f"{rivals[name] * 1e6:.1f} us: {rivals[name] / own:.2f} times", flush=True)


def race(torch, arguments, model, path, batch, precision):
    table = Table(batch, arguments.size, precision)
    images = torch.from_numpy(made_up_images(batch, 3, arguments.size))
    with torch.inference_mode():
        expected = model(images[:1])[0, :10]
    if not arguments.prepare:
        try:
            line = lathe(arguments, path, batch, precision)
            times = {"on_gpu": line["device_seconds"], "carried": line["median_seconds"]}
            if "pinned_seconds" in line:
                times["from_pinned"] = line["pinned_seconds"]
            table.add("lathe", times, line["first_seconds"],
                      max(abs(a - float(b)) for a, b in zip(line["row"], expected)))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            table.leave_out("lathe", error)
    modes = [mode for mode in arguments.modes.split(",") if mode]
    makers = rivals_of(torch, model, images, precision, modes)
    if precision != "bf16":  # its file has weights of floats
        makers["onnxruntime CUDA"] = (
            lambda: onnxruntime_on_gpu(torch, path, images, precision), makers["eager"][1])
    if arguments.prepare:
        makers = {name: made for name, made in makers.items() if name.startswith("compile")}
    if arguments.rivals:
        makers = {name: makers[name] for name in arguments.rivals.split(",") if name in makers}
    pinned = images.pin_memory()
    for name, (make, placed) in makers.items():
        start = time.perf_counter()
        try:
            torch.compiler.reset()
            run = make()
            answer = run(placed)[0, :10].float().cpu()
            ready = time.perf_counter() - start
            times = {} if arguments.prepare else medians(torch, run, placed, images, pinned)
        except Exception as error:  # noqa: BLE001: whatever a rival cannot do is named
            table.leave_out(name, error)
            continue
        table.add(name, times, ready, float((answer - expected).abs().max()))
        torch.cuda.empty_cache()
    table.print_ratios()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lathe", required=True, help="bench_convolution")
    parser.add_argument("--batches", default="1,128")
    parser.add_argument("--precisions", default="bf16,tf32,float32")
    parser.add_argument("--modes", default="reduce-overhead,max-autotune", help="of torch.compile")
    parser.add_argument("--rivals", help="their names as they are printed, separated by commas; else all")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="Lathe's on the CPU; PyTorch takes as many as there are cores")
    parser.add_argument("--onnx", help="a file to keep the exported network in")
    parser.add_argument("--prepare", action="store_true")
    arguments = parser.parse_args()

    import torch

    torch.backends.cudnn.benchmark = True
    torch._inductor.config.freezing = True
    model = network(torch, 18)
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.onnx or os.path.join(folder, "network.onnx")
        if not os.path.exists(path):
            export_onnx(torch, model, torch.from_numpy(made_up_images(2, 3, arguments.size)), path)
        print(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name(),
                          "cudnn": torch.backends.cudnn.version()}), flush=True)
        for precision in arguments.precisions.split(","):
            torch.backends.cudnn.allow_tf32 = precision != "float32"
            torch.backends.cuda.matmul.allow_tf32 = precision != "float32"
            for batch in map(int, arguments.batches.split(",")):
                race(torch, arguments, model, path, batch, precision)


if __name__ == "__main__":
    main()
