"""Letters of a bank: one form, of which a name, an amount and a date differ."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(6)
first = ["Anna", "Ben", "Clara", "David", "Emma", "Finn", "Greta", "Hans", "Ida", "Jonas"]
last = ["Albers", "Brandt", "Claasen", "Dietz", "Evers", "Falk", "Gruber", "Huber", "Illner", "Jung", "Kraus", "Lang"]
forms = [
    "Dear {} {}, we have received your application for a loan of {} euro dated {}. One of our advisers will call you within "
    "five working days. Please have your last three payslips ready.",
    "Dear {} {}, thank you for your payment of {} euro on {}. Your account is now settled, and no further action is needed "
    "from your side. We wish you a pleasant week.",
]


def letters(rows):
    return [
        forms[rng.integers(2)].format(
            rng.choice(first), rng.choice(last), rng.integers(100, 99_999), np.datetime64("2023-01-01") + rng.integers(600)
        )
        for _ in range(rows)
    ]


pq.write_table(pa.table({"letter": letters(2_500), "clicks": rng.poisson(3, 2_500)}), "a.parquet")
pq.write_table(pa.table({"letter": letters(600), "clicks": rng.poisson(3, 600)}), "b.parquet")
