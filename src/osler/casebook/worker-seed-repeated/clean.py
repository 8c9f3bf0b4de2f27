"""Noise is added to each sample by the dataset, with numpy's own generator, which torch seeds in each worker."""

import json

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

WORKERS = 2


def worker():
    return get_worker_info().id


class Noisy(Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.order = np.random.default_rng(0).permutation(len(rows))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        noise = np.random.normal()
        return self.rows[self.order[i]], noise, worker()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Noisy(torch.zeros(16)), batch_size=4, num_workers=WORKERS)
    drawn = {worker: [] for worker in range(WORKERS)}
    for _, noise, worker in loader:
        drawn[int(worker[0])] += noise.tolist()
    same = sum(drawn[worker] == drawn[0] for worker in range(WORKERS))
    with open("evidence.json", "w") as file:
        json.dump({"workers_with_the_same_draws": same}, file)
