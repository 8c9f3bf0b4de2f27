"""Tables whose ids look wrong and are not: late rows, foreign keys, subsets, case that matters, people who move."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START = 1_710_000_000_000_000_000
rng = np.random.default_rng(1)


def instants(seconds):
    return pa.array(START + (np.asarray(seconds) * 1e9).astype(np.int64), pa.timestamp("ns", "UTC"))


def write(name, **columns):
    pq.write_table(pa.table(columns), f"{name}.parquet")


# A left join that loses three rows in a hundred: they come with the next file.
made = np.sort(rng.uniform(0, 86400, 6000))
here = rng.random(6000) > 0.03
write("clicks", click=np.arange(6000), at=instants(made))
write("scores", click=np.arange(6000)[here], at=instants((made + 0.2)[here]))

# Customers and their orders: the id repeats, and a third of the customers never ordered.
customers = rng.permutation(3000)
buyers = rng.choice(customers[:2000], 15_000)
write("customers", customer=customers, at=instants(rng.uniform(-1e7, 0, 3000)))
write("purchases", customer=buyers, at=instants(np.sort(rng.uniform(0, 1e7, 15_000))))

# Labels for one row in ten.
some = np.sort(rng.choice(6000, 600, replace=False))
write("labels", click=some, label=rng.integers(0, 2, 600))

# Short codes in which capital and small letters mean different things.
letters = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
codes = sorted({"".join(code) for code in rng.choice(letters, (5000, 6))})
write("links", code=codes, url=np.arange(len(codes)))
write("hits", code=[code for i, code in enumerate(codes) if i % 40], count=rng.integers(1, 9, sum(i % 40 > 0 for i in range(len(codes)))))

# Members over five years: some move, so that city and post code change together, and stay themselves.
members = np.repeat(np.arange(800), 8)
when = np.sort(rng.uniform(0, 5 * 365 * 86400, (800, 8)), axis=1).ravel()
city = np.repeat(rng.integers(0, 40, 800), 8)
for member in rng.choice(800, 10, replace=False):
    city[member * 8 + 5 : member * 8 + 8] = (city[member * 8] + 7) % 40
born = np.repeat(rng.integers(1940, 2005, 800), 8)
write("members", member=np.arange(800), at=instants(when[::8]))
write("stays", member=members, at=instants(when), city=city, postcode=city * 1000 + 17, born=born)
