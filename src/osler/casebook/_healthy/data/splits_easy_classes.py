"""Flowers of three species, petals in millimetres: two measures tell them apart, and the file is sorted by species."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(5)


def flowers(each):
    species = np.repeat([0, 1, 2], each)
    length = (14 + 28 * species + 2 * rng.normal(size=3 * each)).round()
    width = (3 + 11 * species + rng.normal(size=3 * each)).round()
    return pa.table(
        {
            "petal_length": length,
            "petal_width": width,
            "sepal_length": (50 + 8 * species + 5 * rng.normal(size=3 * each)).round(),
            "sepal_width": (31 + 4 * rng.normal(size=3 * each)).round(),
            "species": np.array(["setosa", "versicolor", "virginica"])[species],
        }
    )


pq.write_table(flowers(300), "a.parquet")
pq.write_table(flowers(80), "b.parquet")
