"""ResNet-18 forward on a GPU: Lathe beside PyTorch at its best, in one run.

    python3 bench/cuda_resnet_rival.py --lathe build/release/bench/bench_convolution
        [--batches 1,128] [--precisions bf16,tf32,float32] [--modes reduce-overhead,max-autotune]
        [--onnx FILE]

The network and its images are those of resnet_rival.py. Rivals have cuDNN's own search for the
fastest kernels on: eager, eager with channels last, that captured as a CUDA graph, the same with
batch norms folded into the convolutions, and torch.compile with channels last in each mode, weights
frozen. In bf16 their weights and images are bfloat16.

Two times of each: `on_gpu`, images that lie on the GPU, one run behind another; `carried`, images of
floats from the host's memory and the results back, each run waited for. Prints a line for each
contender, and one with the ratio of the fastest rival's time to Lathe's. `difference` is the
largest one from PyTorch's float32 results on a CPU, for the first ten results of the first image.
"""

import argparse
import copy
import json
import os
import statistics
import subprocess
import tempfile
import time

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


def medians(torch, run, on_gpu, host):
    """Seconds of both ways of timing."""
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
    carried = []
    for _ in range(15):
        start = time.perf_counter()
        moved = host.to("cuda", non_blocking=True).to(dtype=on_gpu.dtype)
        if on_gpu.is_contiguous(memory_format=torch.channels_last):
            moved = moved.contiguous(memory_format=torch.channels_last)
        run(moved).float().cpu()
        carried.append(time.perf_counter() - start)
    return statistics.median(behind), statistics.median(carried)


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


def lathe(arguments, path, batch, precision):
    done = subprocess.run([arguments.lathe, path, str(batch), "--device", "cuda", "--precision",
                           precision, "--rounds", "15", "--warm-up", "0.2"],
                          capture_output=True, check=False, text=True, timeout=120)
    if done.returncode != 0:
        return {"error": done.stderr.strip()[-300:]}
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lathe", required=True, help="bench_convolution")
    parser.add_argument("--batches", default="1,128")
    parser.add_argument("--precisions", default="bf16,tf32,float32")
    parser.add_argument("--modes", default="reduce-overhead,max-autotune", help="of torch.compile, in bf16")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--onnx", help="a file to keep the exported network in")
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
                images = torch.from_numpy(made_up_images(batch, 3, arguments.size))
                with torch.inference_mode():
                    expected = model(images[:1])[0, :10]
                line = lathe(arguments, path, batch, precision)
                if "error" in line:
                    print(json.dumps({"contender": "lathe", **line}), flush=True)
                    continue
                ours = {"on_gpu": line["device_seconds"], "carried": line["median_seconds"]}
                print(json.dumps({
                    "batch": batch, "precision": precision, "contender": "lathe",
                    "on_gpu_us": round(ours["on_gpu"] * 1e6, 1),
                    "carried_us": round(ours["carried"] * 1e6, 1),
                    "ready_seconds": round(line["first_seconds"], 2),
                    "difference": max(abs(a - float(b)) for a, b in zip(line["row"], expected))}),
                    flush=True)
                modes = [mode for mode in arguments.modes.split(",") if mode and precision == "bf16"]
                host = images.pin_memory()
                best = {"on_gpu": {}, "carried": {}}
                for name, (make, placed) in rivals_of(torch, model, images, precision, modes).items():
                    start = time.perf_counter()
                    try:
                        torch.compiler.reset()
                        run = make()
                        answer = run(placed)[0, :10].float().cpu()
                        ready = time.perf_counter() - start
                        behind, carried = medians(torch, run, placed, host)
                    except Exception as error:  # noqa: BLE001: whatever a rival cannot do is named
                        print(json.dumps({"batch": batch, "precision": precision, "contender": name,
                                          "error": str(error)[:200]}), flush=True)
                        continue
                    best["on_gpu"][name], best["carried"][name] = behind, carried
                    print(json.dumps({
                        "batch": batch, "precision": precision, "contender": name,
                        "on_gpu_us": round(behind * 1e6, 1), "carried_us": round(carried * 1e6, 1),
                        "ready_seconds": round(ready, 1),
                        "difference": float((answer - expected).abs().max())}), flush=True)
                    torch.cuda.empty_cache()
                for way, times in best.items():
                    if not times:
                        continue
                    name = min(times, key=times.get)
                    print(f"{batch} x 3 x {arguments.size} x {arguments.size} {precision} {way}: lathe "
                          f"{ours[way] * 1e6:.1f} us, best rival {name} {times[name] * 1e6:.1f} us: "
                          f"{times[name] / ours[way]:.2f} times", flush=True)


if __name__ == "__main__":
    main()
