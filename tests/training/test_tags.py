"""Names given to tensors."""

from __future__ import annotations

import gc

import pytest

from osler.training import tags


class Thing:
    """Anything that can be referred to weakly; tags ask nothing else of a tensor."""


def test_a_name_is_remembered_while_the_tensor_lives() -> None:
    thing = Thing()
    assert tags.tag(thing, "logits") is thing
    assert tags.name_of(thing) == "logits"
    tags.tag(thing, "again")
    assert tags.name_of(thing) == "again"
    key = id(thing)
    del thing
    gc.collect()
    assert key not in tags._names


def test_others_have_no_name() -> None:
    assert tags.name_of(Thing()) is None


def test_what_cannot_be_remembered_passes_through() -> None:
    assert tags.tag(3, "three") == 3
    assert tags.name_of(3) is None


@pytest.mark.parametrize("name", [None, 3, b"x"])
def test_a_name_is_a_string(name: object) -> None:
    with pytest.raises(TypeError, match="a tag is a string, not "):
        tags.tag(Thing(), name)  # type: ignore[arg-type]


def test_listeners_hear_of_tags_until_stopped() -> None:
    heard: list[str] = []
    stop = tags.listen(lambda thing, name: heard.append(name))
    thing = Thing()
    tags.tag(thing, "a")
    stop()
    stop()
    tags.tag(thing, "b")
    assert heard == ["a"]
