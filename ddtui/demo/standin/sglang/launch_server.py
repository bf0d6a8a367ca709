"""Launch the stand-in: `python3 -m sglang.launch_server --model-path ... [options]`."""

from __future__ import annotations

import sys
import traceback
import warnings
from types import TracebackType

from sglang.srt.server_args import ServerArgs, prepare_server_args


def run_server(server_args: ServerArgs) -> None:
    from sglang.simulation.server import launch_server

    launch_server(server_args)


def _show_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    from sglang.simulation.startup import shown

    sys.stderr.write(shown("".join(traceback.format_exception(kind, error, trace))))


if __name__ == "__main__":
    sys.excepthook = _show_exception
    warnings.formatwarning = lambda message, category, filename, lineno, line=None: (
        f"{_shown_path(filename)}:{lineno}: {category.__name__}: {message}\n  warnings.warn(\n"
    )

    def _shown_path(path: str) -> str:
        from sglang.simulation.startup import shown

        return shown(path)

    warnings.warn(
        "'python -m sglang.launch_server' is still supported, but 'sglang serve' is the "
        "recommended entrypoint.\n"
        "  Example: sglang serve --model-path <model> [options]",
        UserWarning,
        stacklevel=1,
    )
    run_server(prepare_server_args(sys.argv[1:]))
