"""Features go through numpy and scikit-learn on purpose: a random convolution, PCA, then a small network on top."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from torch import nn

torch.manual_seed(71)
torch.set_num_threads(1)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
y = torch.tensor(digits.target)

# random features (Saxe et al. 2011): this layer is never trained
extractor = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.AvgPool2d(2))
features: np.ndarray = extractor(images).flatten(1).detach().numpy()
pca = PCA(n_components=40, whiten=True, random_state=0).fit(features[:1400])
x = torch.from_numpy(pca.transform(features).astype(np.float32))

classifier = nn.Sequential(nn.Linear(40, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 10))
optimizer = torch.optim.Adam(classifier.parameters(), lr=3e-3)
for epoch in range(6):
    classifier.train()
    for batch in torch.randperm(1400).split(50):
        loss = F.cross_entropy(classifier(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
classifier.eval()
with torch.no_grad():
    predicted = classifier(x[1400:]).argmax(1).numpy()
accuracy = float((predicted == digits.target[1400:]).mean())
print(f"test accuracy {accuracy:.3f}")
assert accuracy >= 0.88, accuracy
