"""What is readable: the interpreter and its packages; what is not: this project's answers, homes, other runs."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

import runners
from runners import sandbox
from runners.sandbox import landlock, paths
from runners.sandbox.level import level_of


def covers(whole, path: Path) -> bool:
    return any(path == one or one in path.parents for one in whole)


def test_the_interpreter_is_readable_and_this_project_is_not():
    whole = sandbox.readable_paths()
    project = Path(runners.__file__).resolve().parents[1]
    for module in ("json", "msgspec", "torch"):
        spec = importlib.util.find_spec(module)
        assert covers(whole, Path(spec.origin).resolve())
    assert covers(whole, Path(sys.executable).resolve())
    assert covers(whole, Path(runners.__file__).resolve())
    for name in ("console", "rubrics", "sample_submissions", "tests"):
        assert not covers(whole, project / name)
    for path in (
        "/",
        "/root",
        "/home",
        "/tmp",
        "/dev/shm",
        "/proc",
        "/etc/shadow",
        "/run",
        "/var",
        os.path.expanduser("~"),
    ):
        assert Path(path) not in whole
    assert all(path.exists() for path in whole)


@pytest.fixture
def installation(tmp_path, monkeypatch):
    """A made-up prefix with packages, in which ``runners`` may be installed."""
    site = tmp_path / "prefix" / "lib" / "site-packages"
    for name in ("runners", "console/data/rubrics", "torch", "rubrics", "sample_submissions"):
        (site / name).mkdir(parents=True)
    (site / "single.py").touch()
    (tmp_path / "prefix" / "bin").mkdir()
    (site / "runners" / "__init__.py").touch()
    monkeypatch.setattr(paths, "_roots", lambda: [tmp_path / "prefix"])
    monkeypatch.setattr(runners, "__file__", str(site / "runners" / "__init__.py"))
    paths._carved.cache_clear()
    yield site
    paths._carved.cache_clear()


def test_a_wheel_is_given_entry_by_entry(installation, tmp_path):
    whole, listed = sandbox.readable_paths(), sandbox.listable_paths()
    names = {path.name for path in whole if path.parent == installation}
    assert names == {"runners", "torch", "single.py"}
    assert tmp_path / "prefix" / "bin" in whole
    assert set(listed) == {tmp_path / "prefix", tmp_path / "prefix" / "lib", installation}


def test_an_excluded_folder_is_left_out(installation):
    whole = sandbox.readable_paths([installation / "torch"])
    assert installation / "torch" not in whole
    assert installation / "single.py" in whole
    assert installation / "torch" in sandbox.readable_paths()


def test_a_link_into_what_is_hidden_is_left_out(installation):
    (installation / "innocent").symlink_to(installation / "console")
    (installation / "deep").symlink_to(installation / "console" / "data")
    (installation / "up").symlink_to(installation)
    (installation / "good").symlink_to(installation / "torch")
    names = {path.name for path in sandbox.readable_paths() if path.parent == installation}
    assert names == {"runners", "torch", "single.py", "good"}


def test_an_editable_installation_gives_runners_alone(installation, tmp_path, monkeypatch):
    project = tmp_path / "prefix" / "src" / "project"
    (project / "runners").mkdir(parents=True)
    (project / "console").mkdir()
    (project / "tasks").mkdir()
    (project / "runners" / "__init__.py").touch()
    monkeypatch.setattr(runners, "__file__", str(project / "runners" / "__init__.py"))
    paths._carved.cache_clear()
    whole = sandbox.readable_paths()
    assert [path for path in whole if project in path.parents] == [project / "runners"]
    assert not covers(whole, project / "console")
    assert covers(whole, installation / "torch")


def test_rules_hold_file_by_file(cage):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name in ("open", "closed"):
            Path(folder, name).mkdir()
            Path(folder, name, "file").write_text(name)

        def work():
            results = [Path(folder, "open", "file").read_text()]
            for look in (lambda: Path(folder, "closed", "file").read_text(), lambda: os.listdir(folder)):
                with pytest.raises(PermissionError):
                    look()
            return results

        seen = cage.run(work, read=(Path(folder, "open"),))
    assert seen.value == ["open"], seen.error


@pytest.mark.parametrize(
    ("abi", "size", "highest"), [(1, 8, 12), (2, 8, 13), (3, 8, 14), (4, 16, 14), (5, 16, 15), (6, 24, 15), (7, 24, 15)]
)
def test_the_ruleset_fits_the_abi(abi, size, highest):
    attributes = landlock.ruleset_attributes(abi)
    assert len(attributes) == size
    assert landlock.handled_rights(abi).bit_length() - 1 == highest
    assert landlock.handled_rights(abi) & 0x1FFF == 0x1FFF


def test_levels_say_what_is_missing():
    full = level_of(7, True)
    assert (full.reached, full.label, full.missing, full.scoping) == (True, "landlock-7+seccomp-notify", (), True)
    older = level_of(4, True)
    assert older.reached and not older.scoping and len(older.missing) == 1
    oldest = level_of(1, True)
    assert oldest.reached and len(oldest.missing) == 2
    none = level_of(0, False)
    assert not none.reached and none.label == "none" and len(none.missing) == 2
    assert not level_of(7, False).reached
    assert not level_of(0, True).reached


def test_this_machine_is_probed():
    here = sandbox.level()
    assert here.landlock_abi in (0, landlock.abi())
    assert here.reached == (here.landlock_abi > 0 and here.seccomp_notify)
    assert sandbox.level() is here


def test_more_than_one_thread_is_not_held():
    import threading

    ready = threading.Event()
    thread = threading.Thread(target=ready.wait)
    thread.start()
    try:
        with pytest.raises(sandbox.SandboxError, match="thread"):
            sandbox.restrict(sandbox.Profile.STRICT, read=(), write=(), memory_mib=1, cpu_seconds=1)
    finally:
        ready.set()
        thread.join()
