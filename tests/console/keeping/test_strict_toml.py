from __future__ import annotations

import pytest

from console.schema import MAX_TOML_BYTES, SchemaError, Strict, convert, load_toml, nearest


class Inner(Strict, frozen=True):
    size: int
    name: str = ""


class Outer(Strict, frozen=True):
    inner: Inner
    maybe: Inner | None = None
    many: tuple[Inner, ...] = ()


@pytest.mark.parametrize(
    ("raw", "key", "words"),
    [
        ({}, "inner", "required key is missing"),
        ({"inner": {}}, "inner.size", "required key is missing"),
        ({"inner": {"size": 1, "nmae": "x"}}, "inner.nmae", "did you mean `name`?"),
        ({"inner": {"size": 1}, "maybe": {"sise": 1}}, "maybe.sise", "did you mean `size`?"),
        ({"inner": {"size": 1}, "many": [{"size": 1}, {"size": "x"}]}, "many[1].size", "Expected `int`, got `str`"),
        ({"inner": {"size": 1}, "zzz": 1}, "zzz", "known: inner, maybe, many"),
        ({"inner": 3}, "inner", "Expected `object`, got `int`"),
        ({"inner": {"size": 1}, "many": 3}, "many", "Expected `array`, got `int`"),
        ({"inner": {"size": 1}, "many": [3]}, "many[0]", "Expected `object`, got `int`"),
        ([], "", "Expected `object`, got `array`"),
    ],
)
def test_the_innermost_fault_is_named(raw: object, key: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        convert(raw, Outer, "f.toml")
    assert (caught.value.file, caught.value.key) == ("f.toml", key)
    assert words in caught.value.message
    assert str(caught.value).startswith(f"f.toml: {key}: " if key else "f.toml: ")


def test_what_fits_is_converted() -> None:
    assert convert({"inner": {"size": 1}, "many": [{"size": 2}]}, Outer, "f").many == (Inner(size=2),)


def test_bytes_are_bounded_and_decoded() -> None:
    assert load_toml(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n", "f") == {"a": 1, "b": 2}
    with pytest.raises(SchemaError, match="larger than"):
        load_toml(b"#" * (MAX_TOML_BYTES + 1), "f")
    with pytest.raises(SchemaError, match="not UTF-8 at byte 5"):
        load_toml(b"a = '\xff'", "f")


def test_the_nearest_word() -> None:
    assert nearest("outcom", ["outcome", "mechanism"]) == "did you mean `outcome`?"
    assert nearest("x", ["outcome", "mechanism"]) == "known: outcome, mechanism"


@pytest.mark.parametrize("text", ["x = " + "9" * 6000, "x = " + "[" * 100_000])
def test_what_is_too_much_for_the_parser_is_named(text: str) -> None:
    with pytest.raises(SchemaError, match="not TOML"):
        load_toml(text.encode(), "f.toml")
