"""-1 for colder than freezing by one, 999 grams, NA for Namibia, 9 of 10 points: values that look like codes."""

import csv

import numpy as np

ROWS = 1500


def orders(seed, name):
    rng = np.random.default_rng(seed)
    frost = np.round(rng.normal(-3, 6, ROWS))
    balance = np.round(rng.normal(0, 1500, ROWS))
    balance[::50] = -999
    weight = np.round(rng.uniform(200, 2000, ROWS))
    weight[::40] = 999
    points = rng.integers(0, 11, ROWS)
    trend = rng.choice([-1, 0, 1], ROWS)
    country = rng.choice(["NA", "ZA", "BW", "ZM"], ROWS)
    returned = (rng.random(ROWS) < 1 / (1 + np.exp(0.5 * (points - 5) - 0.2 * frost))).astype(int)
    with open(name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["frost", "balance", "weight", "points", "trend", "country", "returned"])
        writer.writerows(zip(frost, balance, weight, points, trend, country, returned))


orders(0, "train.csv")
orders(1, "today.csv")
