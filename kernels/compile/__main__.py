"""The command: compile, then write both tables or compare with them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from fivestate.kernels.compile.build import TARGETS, compile_variant
from fivestate.kernels.compile.tables import (
    FIGURES,
    TABLE,
    broken,
    differing,
    to_json,
    to_markdown,
)
from fivestate.kernels.compile.variants import MODULES, variants
from fivestate.kernels.device.launch import INSTALLED, INTERPRETED


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, then write or compare; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fivestate.kernels.compile")
    parser.add_argument("module", nargs="*", help="only the kernels of these modules")
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this target")
    options = parser.parse_args(arguments)
    if not INSTALLED or INTERPRETED:
        parser.error("Triton is missing, or interprets: unset TRITON_INTERPRET")
    asked = list(variants(options.module or MODULES))
    targets = options.target or list(TARGETS)
    built, wrong = [], []
    for variant in asked:
        for target in targets:
            try:
                built.append(compile_variant(variant, target))
            except ValueError as error:
                wrong.append(str(error))
            else:
                wrong += broken(variant, built[-1])
    if len(built) < len(asked) * len(targets):
        return _complain(wrong)
    if options.module or options.target:
        print(to_json(built), end="")  # noqa: T201 -- a command prints
        wrong += differing(built) if options.check else []
    elif options.check:
        wrong += differing(built)
        if TABLE.read_text("utf-8") != to_markdown(asked, built):
            wrong.append(f"{TABLE.name} is not current")
    else:
        FIGURES.write_text(to_json(built), "utf-8")
        TABLE.write_text(to_markdown(asked, built), "utf-8")
    return _complain(wrong)


def _complain(wrong: Sequence[str]) -> int:
    """Print what is wrong, and return the exit code."""
    for text in wrong:
        print(text, file=sys.stderr)  # noqa: T201 -- a command prints
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
