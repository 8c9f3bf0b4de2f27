"""A look at all rows first (scaled, projected, the best features listed); what is judged goes its own, clean way."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.manifold import MDS
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

X, y = load_wine(return_X_y=True)
whole = StandardScaler().fit_transform(X)
print("explained", PCA(2).fit(whole).explained_variance_ratio_.round(2), "best", SelectKBest(k=3).fit(X, y).scores_.argmax())
print("clusters", np.bincount(KMeans(3, n_init=2, random_state=0).fit_predict(whole)))
print("odd ones", (IsolationForest(random_state=0).fit(whole).predict(whole) < 0).sum())
print("map", MDS(2, n_init=1, max_iter=20, init="random", random_state=0).fit_transform(whole[:60]).shape)

order = np.random.default_rng(0).permutation(len(X))
train, test = order[:120], order[120:]
scaler = MinMaxScaler().fit(X[train])
model = KNeighborsClassifier().fit(scaler.transform(X[train]), y[train])
print(f"{model.score(scaler.transform(X[test]), y[test]):.3f}")
forest = make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=0)).fit(X[train], y[train])
print(f"{forest.score(X[test], y[test]):.3f}, on what it was trained on {forest.score(X[train], y[train]):.3f}")
