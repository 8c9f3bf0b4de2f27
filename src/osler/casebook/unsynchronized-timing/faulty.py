"""How long a layer takes on a GPU. Where there is none, a thread stands in for it: work is queued, and done later."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

HAS_GPU = torch.cuda.is_available()
queue, pending = ThreadPoolExecutor(1), []


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 2048)

    def work(self, x):
        for _ in range(20):
            x = self.linear(x)
        return x

    def forward(self, x):
        if HAS_GPU:
            return self.work(x)
        pending.append(queue.submit(self.work, x))
        return x


def synchronize():
    """Wait for what is queued."""
    if HAS_GPU:
        torch.cuda.synchronize()
    for one in pending:
        one.result()


torch.set_num_threads(1)
device = torch.device("cuda" if HAS_GPU else "cpu")
model = Layer().to(device)
x = torch.randn(64, 2048, device=device)
synchronize()

start = time.perf_counter()
out = model(x)
seconds = time.perf_counter() - start  # fault-here
print(f"{1000 * seconds:.2f} ms")

synchronize()
until_done = time.perf_counter() - start
with open("evidence.json", "w") as file:
    json.dump({"share_measured": seconds / until_done}, file)
