"""Stock and sales by article number; the sales went through a program that takes the numbers for numbers."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
ARTICLES = 3000

rng = np.random.default_rng(5)
numbers = rng.choice(99_999, ARTICLES, replace=False)
stock = [f"{n:08d}" for n in numbers]
sold = rng.choice(ARTICLES, 12_000)
if FAULTY:
    sales = [str(int(stock[i])) for i in sold]  # fault-here
else:
    sales = [stock[i] for i in sold]
pq.write_table(pa.table({"article": stock, "pieces": rng.integers(0, 500, ARTICLES)}), "stock.parquet")
pq.write_table(pa.table({"article": sales, "price": rng.gamma(3, 10, len(sales))}), "sales.parquet")

known = set(stock)
evidence = {"matched_share": sum(article in known for article in sales) / len(sales)}
print(evidence)
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
