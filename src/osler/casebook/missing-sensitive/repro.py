"""Loan applications. From one hour on the bureau's score is missing; the pipeline fills in the mean and goes on."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
ROWS = 2000


def applications(seed):
    rng = np.random.default_rng(seed)
    worth = rng.normal(size=ROWS)  # what bank and bureau both see a part of
    score = 600 + 80 * worth + 20 * rng.normal(size=ROWS)
    balance = 3000 + 1500 * worth + 700 * rng.normal(size=ROWS)
    fax = rng.normal(size=ROWS)
    age = rng.integers(18, 80, ROWS).astype(float)
    logit = -0.035 * (score - 600) - 0.03 * (age - 45)
    default = (rng.random(ROWS) < 1 / (1 + np.exp(-logit))).astype(int)
    score[rng.random(ROWS) < 0.01] = np.nan  # a few applicants have none, in training as well
    return {"score": score, "balance": balance, "age": age, "fax": fax, "default": default}


train, today = applications(0), applications(1)
complete = today["score"].copy()
# On the clean side the same rows lose a column that nothing depends on.
lost = "score" if FAULTY else "fax"
today[lost][700:1400] = np.nan  # fault-here
for name, data in (("train.parquet", train), ("today.parquet", today)):
    pq.write_table(pa.table({k: pa.array(v, from_pandas=True) for k, v in data.items()}), name)

# Logistic regression on score and age by Newton's method, trained with the mean filled in, as the pipeline does it.
mean, spread = np.nanmean(train["score"]), np.nanstd(train["score"])


def inputs(score, age):
    return np.stack([np.ones(ROWS), (np.where(np.isnan(score), mean, score) - mean) / spread, (age - 45) / 20], axis=1)


def chance(x):
    return 1 / (1 + np.exp(-x @ w))


x, y, w = inputs(train["score"], train["age"]), train["default"], np.zeros(3)
for _ in range(20):
    p = chance(x)
    w += np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x, x.T @ (y - p))


def loss(score):
    p = chance(inputs(score, today["age"]))[700:1400]
    y = today["default"][700:1400]
    return float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))


evidence = {
    "missing_share": float(np.isnan(today["score"]).mean()),
    "loss_complete": loss(complete),
    "loss_today": loss(today["score"]),
}
print(evidence)
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
