"""What this machine can and cannot check, and why."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from console.errors import Exit

if TYPE_CHECKING:
    from console.config import Config
    from console.verbs.output import Tone
    from runners.doctor import Line

_TONE: dict[str, Tone] = {"ok": "good", "limited": "warn", "missing": "bad"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the verb takes."""
    parser.add_argument("--python", metavar="PATH", help="the Python that would run candidates")


def run(args: argparse.Namespace) -> int:
    """Print what was found; 3 where something is missing without which panels cannot run."""
    from console.config import state_dir
    from console.verbs.output import print_json, print_text, table
    from runners.doctor import examine, gather, worst

    config, about_config = _config()
    python = args.python or (config.runner.python if config else None)
    lines = (*examine(gather(python, state=state_dir())), about_config)
    if args.json:
        for line in lines:
            print_json(line)
    else:
        tones: list[list[Tone]] = [["strong", _TONE[line.status], "plain"] for line in lines]
        table([[line.name, line.status, line.words] for line in lines], tones)
        for line in lines:
            if line.todo:
                print_text((f"{line.name}: ", "strong"), line.todo)
    return Exit.NOT_DETERMINED if worst(lines) == "missing" else Exit.DONE


def _config() -> tuple[Config | None, Line]:
    """The configuration, and a line about it: doctor must work where nothing else does."""
    from console.config import config_path, load_config
    from console.errors import words
    from console.schema import SchemaError
    from runners.doctor import Line

    path = config_path()
    try:
        config = load_config()
    except (SchemaError, OSError) as error:
        return None, Line("config", "missing", words(error), "no verb works until it is mended or removed")
    return config, Line("config", "ok", f"{path}" if path.is_file() else f"defaults; {path} would change them")
