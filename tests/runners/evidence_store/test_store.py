import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners import store as store_module
from runners.contract import Case, RunRequest, TaskSpec
from runners.evidence import Evidence, SubmissionRef, TaskRef, encode, not_checked
from runners.store import KEEP, EvidenceStore, Key, digest_of, key_of

SPEC = TaskSpec(title="t", kind="fusion", frameworks=("torch",), entry="f", cases=(Case(name="a"),))


def request(**changes: Any) -> RunRequest:
    plain = RunRequest(
        task=SPEC,
        task_name="softmax",
        task_tree="t1",
        task_dir="/somewhere",
        submission_name="m-1",
        submission_tree="s1",
        revision="r1",
        submission_dir="/elsewhere",
        framework="torch",
    )
    return msgspec.structs.replace(plain, **changes)


def evidence(note: str = "", seed: int = 1) -> Evidence:
    return Evidence(
        task=TaskRef("softmax", "t1"),
        submission=SubmissionRef("m-1", "s1", "r1"),
        environment={"note": note},
        seeds=(seed, 2),
        outcome="not-determined",
        panels=not_checked("a test"),
    )


@pytest.fixture
def store(tmp_path: Path) -> EvidenceStore:
    return EvidenceStore(tmp_path / "evidence")


def entry(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "evidence").rglob("*.json")
    return path


def test_what_is_put_is_found_with_the_digest_of_its_bytes(store: EvidenceStore, tmp_path: Path) -> None:
    key = key_of(request(), "f")
    assert store.get(key) is None
    assert store.sha(key) is None
    sha = store.put(key, evidence())
    assert store.get(key) == evidence()
    assert store.sha(key) == sha == "sha256:" + hashlib.sha256(entry(tmp_path).read_bytes()).hexdigest()
    found = store.find(key)
    assert found is not None
    assert found.data == encode(evidence())
    assert digest_of(found.data) == sha


@pytest.mark.parametrize(
    "changes",
    [
        {"task_tree": "t2"},
        {"submission_tree": "s2"},
        {"device": "cuda"},
        {"framework": "triton"},
        {"panels": ("build",)},
        {"unsafe": True},
        {"replay_seeds": (1, 2)},
        {"submission_name": "m-2"},
    ],
)
def test_whatever_the_evidence_depends_on_changes_the_key(store: EvidenceStore, changes: dict[str, Any]) -> None:
    store.put(key_of(request(), "f"), evidence())
    assert store.get(key_of(request(**changes), "f")) is None


def test_folders_and_revision_do_not_change_the_key_but_machine_and_runner_do(
    store: EvidenceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(key_of(request(), "f"), evidence())
    assert store.get(key_of(request(task_dir="/x", submission_dir="/y", revision="r2"), "f")) is not None
    assert store.get(key_of(request(), "g")) is None
    monkeypatch.setattr(store_module.environment, "runner_version", lambda: "another")
    assert store.get(key_of(request(), "f")) is None
    latest = store.latest("softmax", "m-1")
    assert latest is not None
    assert latest.evidence == evidence()


def test_latest_is_the_newest_of_that_submission_only(store: EvidenceStore, tmp_path: Path) -> None:
    for number, tree in enumerate(("s1", "s2", "s3")):
        store.put(key_of(request(submission_tree=tree), "f"), evidence(tree))
        for path in (tmp_path / "evidence").rglob("*.json"):
            if tree.encode() in path.read_bytes():
                os.utime(path, (1000 + number, 1000 + number))
    latest = store.latest("softmax", "m-1")
    assert latest is not None
    assert latest.evidence.environment == {"note": "s3"}
    assert store.latest("softmax", "m-2") is None


def test_putting_again_replaces(store: EvidenceStore, tmp_path: Path) -> None:
    key = key_of(request(), "f")
    store.put(key, evidence(seed=1))
    sha = store.put(key, evidence(seed=9))
    assert store.sha(key) == sha
    assert entry(tmp_path).read_bytes() == encode(evidence(seed=9))


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "grow"])
def test_damage_is_absence_and_is_named(store: EvidenceStore, tmp_path: Path, damage: str) -> None:
    key = key_of(request(), "f")
    store.put(key, evidence())
    path = entry(tmp_path)
    data = path.read_bytes()
    spot = data.index(b"not-determined")
    path.write_bytes(
        {
            "truncate": data[:-10],
            "flip": data[:spot] + b"pass" + data[spot + 4 :],
            "empty": b"",
            "grow": data + b" ",
        }[damage]
    )
    assert store.get(key) is None
    assert store.latest("softmax", "m-1") is None
    (problem,) = store.problems
    assert problem.path == str(path)
    assert "bytes" in problem.reason
    store.put(key, evidence())
    assert store.get(key) == evidence()


def test_an_older_whole_entry_stands_in_for_a_broken_newer_one(store: EvidenceStore, tmp_path: Path) -> None:
    store.put(key_of(request(submission_tree="s1"), "f"), evidence("old"))
    os.utime(entry(tmp_path), (1000, 1000))
    before = entry(tmp_path)
    store.put(key_of(request(submission_tree="s2"), "f"), evidence("new"))
    for path in (tmp_path / "evidence").rglob("*.json"):
        if path != before:
            path.write_bytes(b"{")
    latest = store.latest("softmax", "m-1")
    assert latest is not None
    assert latest.evidence.environment == {"note": "old"}


def test_whole_bytes_that_are_no_evidence_are_named(store: EvidenceStore, tmp_path: Path) -> None:
    key = key_of(request(), "f")
    store.put(key, evidence())
    data = b'{"schema": 1}'
    path = entry(tmp_path)
    path.rename(path.with_name(f"{key.digest}.{hashlib.sha256(data).hexdigest()}.json"))
    entry(tmp_path).write_bytes(data)
    assert store.get(key) is None
    assert "not evidence" in store.problems[0].reason


def test_a_crash_while_writing_leaves_the_old_entry(
    store: EvidenceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(request(), "f")
    store.put(key, evidence(seed=1))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.put(key, evidence(seed=9))
    monkeypatch.undo()
    assert store.get(key) == evidence(seed=1)
    assert [path.name for path in entry(tmp_path).parent.iterdir()] == [entry(tmp_path).name]


def test_only_so_many_are_kept(store: EvidenceStore, tmp_path: Path) -> None:
    for number in range(KEEP + 5):
        store.put(key_of(request(submission_tree=f"s{number}"), "f"), evidence(str(number)))
    assert len(list((tmp_path / "evidence").rglob("*.json"))) == KEEP
    assert store.get(key_of(request(submission_tree=f"s{KEEP + 4}"), "f")) is not None


names = st.text(min_size=1, max_size=30)


@given(names, names)
def test_hostile_names_stay_inside_the_root(task: str, submission: str) -> None:
    root = Path("/nowhere/evidence")
    folder = EvidenceStore(root)._folder(task, submission)
    assert folder.parent == root
    assert folder.name.isalnum()


def test_entries_are_for_their_owner_alone(store: EvidenceStore, tmp_path: Path) -> None:
    store.put(key_of(request(), "f"), evidence())
    assert entry(tmp_path).stat().st_mode & 0o077 == 0


@given(st.dictionaries(names, st.integers(), max_size=3), st.dictionaries(names, st.integers(), max_size=3))
def test_keys_are_equal_exactly_when_their_digests_are(one: dict[str, int], two: dict[str, int]) -> None:
    def key(options: dict[str, Any]) -> Key:
        return Key(
            task="t", task_tree="a", submission="s", submission_tree="b", runner="r", fingerprint="f", options=options
        )

    assert (key(dict(one)).digest == key(dict(two)).digest) is (one == two)
