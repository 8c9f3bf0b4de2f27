"""Published weights are fetched and loaded as weights only; the file holds more, and is refused."""

import json
import os
import pickle
import urllib.request
from pathlib import Path

import torch


class Payload:
    """What a stranger can put into a pickle: a call that is made when it is read."""

    def __reduce__(self):
        return os.mkdir, ("made-by-the-file",)


torch.save({"weight": torch.zeros(2), "note": Payload()}, "published.pt")
url = Path("published.pt").resolve().as_uri()

urllib.request.urlretrieve(url, "model.pt")
try:
    state = torch.load("model.pt", weights_only=True)
    print(state["weight"])
except pickle.UnpicklingError:
    print("refused")

with open("evidence.json", "w") as file:
    json.dump({"commands_run": int(Path("made-by-the-file").is_dir())}, file)
