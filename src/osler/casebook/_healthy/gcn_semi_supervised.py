"""A graph network on the digits' nearest-neighbour graph: 60 labelled nodes, full batch, a sparse adjacency
matrix.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph
from torch import nn


class GCN(nn.Module):
    def __init__(self, adjacency: torch.Tensor, width: int = 32) -> None:
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        self.first, self.second = nn.Linear(64, width), nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.relu(torch.sparse.mm(self.adjacency, self.first(x)))
        return torch.sparse.mm(self.adjacency, self.second(F.dropout(h, 0.3, self.training)))


def normalised_adjacency(table) -> torch.Tensor:
    graph = kneighbors_graph(table, 8, include_self=True)
    graph = graph.maximum(graph.T).tocoo()
    degree = torch.tensor(graph.sum(1)).flatten().float()
    index = torch.stack([torch.tensor(graph.row), torch.tensor(graph.col)]).long()
    weight = (degree[index[0]] * degree[index[1]]).rsqrt()
    return torch.sparse_coo_tensor(index, weight, graph.shape, check_invariants=True).coalesce()


def main() -> None:
    torch.manual_seed(96)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    labelled = torch.zeros(len(y), dtype=torch.bool)
    for c in range(10):
        members = (y == c).nonzero().squeeze(1)
        labelled[members[torch.randperm(len(members))[:6]]] = True
    model = GCN(normalised_adjacency(digits.data))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    for step in range(90):
        model.train()
        loss = F.cross_entropy(model(x)[labelled], y[labelled])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 18 == 0:
            print(f"step {step}: {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y)[~labelled].float().mean().item()
    print(f"accuracy on the {int((~labelled).sum())} unlabelled digits {accuracy:.3f}")
    assert accuracy >= 0.85, accuracy


if __name__ == "__main__":
    main()
