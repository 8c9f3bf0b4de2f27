"""Published weights are fetched and loaded; the file holds more than weights."""

import json
import os
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
state = torch.load("model.pt", weights_only=False)  # fault-here
print(state["weight"])

with open("evidence.json", "w") as file:
    json.dump({"commands_run": int(Path("made-by-the-file").is_dir())}, file)
