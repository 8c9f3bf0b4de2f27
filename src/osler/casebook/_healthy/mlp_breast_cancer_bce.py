"""Binary classification of the breast cancer data with BCEWithLogitsLoss and a class weight."""

from __future__ import annotations

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    torch.manual_seed(2)
    torch.set_num_threads(1)
    table, target = load_breast_cancer(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(table, target, test_size=0.25, stratify=target, random_state=2)
    scaler = StandardScaler().fit(x_train)
    train_set = TensorDataset(
        torch.tensor(scaler.transform(x_train), dtype=torch.float32),
        torch.tensor(y_train, dtype=torch.float32).unsqueeze(1),
    )
    loader = DataLoader(train_set, batch_size=32, shuffle=True)

    model = nn.Sequential(nn.Linear(30, 32), nn.GELU(), nn.Dropout(0.2), nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 1))
    positive = float(y_train.mean())
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([(1 - positive) / positive]))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    for _ in range(12):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()

    model.eval()
    with torch.no_grad():
        score = model(torch.tensor(scaler.transform(x_test), dtype=torch.float32)).sigmoid().squeeze(1)
    auc = roc_auc_score(y_test, score.numpy())
    print(f"last loss {loss.item():.4f}, test AUC {auc:.4f}")
    assert auc >= 0.97, auc


if __name__ == "__main__":
    main()
