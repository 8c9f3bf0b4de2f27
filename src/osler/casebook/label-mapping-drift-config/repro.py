"""A transformers config with its `id2label`, and the text file that a service names predictions by.

The clean side is a look-alike: the same five names in the same order, from a config whose `label2id` is written backwards.
"""

import json
import sys

FAULTY = "--faulty" in sys.argv

names = ["cat", "dog", "fox", "owl", "toad"]
served = ["background", *names] if FAULTY else list(names)  # fault-here

label2id = {name: k for k, name in reversed(list(enumerate(names)))}
with open("config.json", "w") as file:
    json.dump({"model_type": "vit", "id2label": {str(k): n for k, n in enumerate(names)}, "label2id": label2id}, file)
with open("classes.txt", "w") as file:
    file.write("\n".join(served) + "\n")

with open("evidence.json", "w") as file:
    json.dump({"wrong_indices": sum(a != b for a, b in zip(names, served))}, file)
