"""What a refusal of argparse or the first exception of a start means.

Texts from the sources of 0.5.9 to 0.5.23, from PyTorch, NCCL and Hugging Face, and from real failed starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ddtui.engine import startup
from ddtui.engine.log import Kind
from ddtui.engine.scene import Block, Cause, Found, Scene, sentence

Maker = Callable[[Scene, Block, re.Match[str]], Found | None]


def refused_argument(scene: Scene) -> Found | None:
    line = next((line for line in reversed(scene.lines) if line.kind is Kind.ARGUMENT_ERROR), None)
    if line is None or scene.ready:
        return None
    message, flag, value = str(line.fields["message"]), line.fields.get("flag"), line.fields.get("value")
    advice = "Correct or remove it."
    if message.startswith("unrecognized arguments"):
        cause = f"This SGLang does not know {flag}: {message}."
        advice = "Remove it, or use the name that this version has."
        if flag and "draft-window-size" in flag:
            advice = (
                "The window's flag is --speculative-dflash-draft-window-size in 0.5.11 and "
                "--speculative-draft-window-size from 0.5.12 on; the old name is gone from 0.5.20 on."
            )
    elif "invalid choice" in message:
        cause = f"{flag} cannot be {value}: {message}."
        if flag == "--speculative-algorithm" and value and "DDTREE" in value.upper():
            advice = "This SGLang has no DDTree; no release has one, only forks."
    elif "are required" in message:
        cause = f"An argument is missing: {message}."
        advice = "Add it."
    else:
        cause = f"SGLang's parser refused {flag or 'the command line'}: {message}."
    return Found(Cause.ARGUMENT, cause, [line.raw], advice, flag, value)


def exception(scene: Scene) -> Found | None:
    """The first traceback is the cause; those of other ranks and of the launcher echo it."""
    fatal = [block for block in scene.blocks if _fatal(scene, block)]
    for block in fatal[:1]:
        if "warmup error" in block.lines[0].text:
            why = sentence(f"{block.type}: {block.message}")
            return Found(
                Cause.WARM_UP,
                f"The model is loaded, and the first request failed: {why}",
                block.evidence,
                "A kernel that does not fit this GPU is the usual cause: try another attention backend.",
            )
        for pattern, make in _EXCEPTIONS:
            match = pattern.search(f"{block.type}: {block.message}")
            if match:
                found = make(scene, block, match)
                if found:
                    return found
        return crash(block)
    return None


def _fatal(scene: Scene, block: Block) -> bool:
    """A traceback that a scheduler or the launcher died of, not one that was logged and survived."""
    if "hit an exception" in block.lines[0].text:
        return True
    if block.ready:
        return False
    return not any(line.kind is Kind.READY for line in scene.lines)


def crash(block: Block) -> Found:
    """An exception that no rule knows."""
    when = "while serving" if block.ready else f"at: {block.phase}"
    return Found(
        Cause.CRASH,
        f"The server crashed {when}: {sentence(f'{block.type}: {block.message}')}",
        block.evidence,
        "Look the message up among SGLang's issues, and try without the last change.",
    )


def _out_of_memory(scene: Scene, block: Block, match: re.Match[str]) -> Found:
    others = [
        (pid, float(gib))
        for pid, gib in re.findall(r"Process (\d+) has ([\d.]+) GiB memory in use", block.message)
    ]
    if others and sum(gib for _, gib in others) > 4:
        who = ", ".join(f"pid {pid} with {gib:g} GiB" for pid, gib in others)
        return Found(
            Cause.GPU_HELD,
            f"Out of GPU memory, because other processes hold it: {who}.",
            block.evidence,
            "If they are left over from a dead server (sglang::scheduler), end them; then start again.",
        )
    tried = re.search(r"Tried to allocate ([\d.]+ [KMG]iB)", block.message)
    free = re.search(r"of which ([\d.]+ [KMG]iB) is free", block.message)
    amounts = f" ({tried[1]} wanted, {free[1]} free)" if tried and free else ""
    fraction = scene.argument("mem_fraction_static")
    given = f"; --mem-fraction-static is {fraction}" if fraction else ""
    return Found(
        Cause.OUT_OF_MEMORY,
        f"Out of GPU memory {_stage(block)}{amounts}{given}.",
        block.evidence,
        "Lower --mem-fraction-static; or fewer --max-running-requests, smaller --cuda-graph-max-bs.",
        "--mem-fraction-static",
        fraction,
    )


def _stage(block: Block) -> str:
    drafter = "drafter's" if block.phase in startup.DRAFT or "draft" in block.frames else "target's"
    if "cuda_graph" in block.frames or "graph_runner" in block.frames:
        return f"capturing the {drafter} CUDA graphs"
    if "memory_pool" in block.frames or "_init_pools" in block.frames:
        return f"allocating the {drafter} KV pool"
    if "load_model" in block.frames or "model_loader" in block.frames:
        return f"loading the {drafter} weights"
    return "while serving" if block.ready else f"at: {block.phase}"


def _missing_model(scene: Scene, block: Block, match: re.Match[str]) -> Found:
    path = match.groupdict().get("path") or ""
    is_draft = bool(path) and path == scene.drafter
    what, flag = (
        ("drafter", "--speculative-draft-model-path") if is_draft else ("target model", "--model-path")
    )
    if not path:
        return Found(
            Cause.MISSING_MODEL,
            f"A model or its files are missing: {sentence(block.message)}",
            block.evidence,
            "Check --model-path and --speculative-draft-model-path on the host.",
        )
    if path.startswith(("/", ".", "~")):
        cause = f"There is no {what} at {path} (SGLang then took the path for a Hugging Face repo id)."
        advice = "Check the path as the service's user sees it, mounts included."
    else:
        cause = f"The {what} {path} could not be had: {sentence(block.message)}"
        advice = "Check the name, the network, HF_HOME and HF_TOKEN in the service's environment."
    return Found(Cause.MISSING_MODEL, cause, block.evidence, advice, flag, path)


def _bad_drafter(scene: Scene, block: Block, match: re.Match[str]) -> Found:
    drafter = f" ({scene.drafter})" if scene.drafter else ""
    return Found(
        Cause.BAD_DRAFTER,
        f"The drafter{drafter} does not fit: {sentence(block.message)}",
        block.evidence,
        "Check the drafter's config.json (ddtui inspect drafter FILE) and that it was made for this target.",
        "--speculative-draft-model-path",
        scene.drafter,
    )


def _bad_config(scene: Scene, block: Block, match: re.Match[str]) -> Found:
    path = match["path"]
    if scene.drafter and path.startswith(scene.drafter.rstrip("/") + "/"):
        return _bad_drafter(scene, block, match)
    return Found(
        Cause.BAD_WEIGHTS,
        f"A model's config is not valid JSON: {path}.",
        block.evidence,
        "Fetch the model again, or mend the file.",
    )


def _rule(scene: Scene, block: Block, match: re.Match[str]) -> Found | None:
    """Raised by SGLang's own checks of the arguments."""
    if (
        "server_args" not in block.frames
        and "model_config" not in block.frames
        and "arg_groups" not in block.frames
    ):
        return None
    flag, value = _offender(block.message)
    advice = f"Change or remove {flag}." if flag else "Change the arguments that it names."
    if re.search(r"requires? setting|must be set|is required", block.message):
        advice = f"Add {flag}." if flag else "Add what it names."
    if "context_length" in block.message:
        advice = "Lower --context-length to what the model's config allows."
    return Found(
        Cause.RULE,
        f"SGLang refuses the arguments: {sentence(block.message)}",
        block.evidence,
        advice,
        flag,
        value,
    )


def _offender(message: str) -> tuple[str | None, str | None]:
    """The first flag that a rule names, and its value where the rule repeats it."""
    context = re.search(r"User-specified context_length \((\d+)\)", message)
    if context:
        return "--context-length", context[1]
    flag = re.search(r"--[a-z][a-z0-9-]+", message)
    value = re.search(r"(?:\bgot |(?<=\w)=)([\w.]+)", message)
    name = flag[0] if flag else None
    if name is None:
        named = re.search(r"\b(?:only supports|does not support) (\w+)", message)
        name = "--" + named[1].replace("_", "-") if named and "_" in named[1] else None
    return name, value[1].rstrip(".") if value and flag else None


def _import(scene: Scene, block: Block, match: re.Match[str]) -> Found:
    return Found(
        Cause.IMPORT,
        f"The service's Python environment is incomplete: {sentence(f'{block.type}: {block.message}')}",
        block.evidence,
        "Install what is missing into the interpreter that the service uses.",
    )


def _simple(kind: Cause, cause: str, advice: str, flag: str | None = None) -> Maker:
    def make(scene: Scene, block: Block, match: re.Match[str]) -> Found:
        values = {name: text or "" for name, text in match.groupdict().items()}
        words = cause.format(message=sentence(block.message), stage=_stage(block), **values)
        value = scene.argument(flag.lstrip("-").replace("-", "_")) if flag else None
        return Found(kind, words, block.evidence, advice, flag, value)

    return make


_LOWER = "Lower --mem-fraction-static, --cuda-graph-max-bs or --max-running-requests."
_EXCEPTIONS: list[tuple[re.Pattern[str], Maker]] = [
    (re.compile(pattern, re.S), make)
    for pattern, make in (
        (
            r"No accelerator \(|No CUDA GPUs are available|Found no NVIDIA driver|CUDA unknown error"
            r"|CUDA driver version is insufficient|no NVIDIA driver",
            _simple(
                Cause.NO_GPU,
                "No usable GPU: {message}",
                "Check nvidia-smi on the host, CUDA_VISIBLE_DEVICES and the device rights of the unit.",
            ),
        ),
        (
            r"memory capacity is unbalanced",
            _simple(
                Cause.GPU_HELD,
                "The GPUs have unequal free memory: others hold some, perhaps a dead server's children.",
                "Look at nvidia-smi, end what is left over (sglang::scheduler), and start again.",
            ),
        ),
        (
            r"Not enough memory\. Please try to increase --mem-fraction-static.*?=(?P<fraction>[\d.]+)",
            _simple(
                Cause.NO_ROOM_FOR_KV,
                "The weights leave no room for the KV cache at --mem-fraction-static {fraction}.",
                "Raise --mem-fraction-static, use more GPUs, or a smaller KV type.",
                "--mem-fraction-static",
            ),
        ),
        (
            r"Not enough memory|max_total_num_tokens.*(?:<=|must be|too small)|KV cache.*too small",
            _simple(
                Cause.NO_ROOM_FOR_KV,
                "There is no room for the KV cache: {message}",
                "Raise --mem-fraction-static.",
            ),
        ),
        (
            r"Capture (?:cuda|CUDA) graph failed",
            _simple(
                Cause.OUT_OF_MEMORY,
                "Capturing CUDA graphs failed: {message}",
                _LOWER,
                "--mem-fraction-static",
            ),
        ),
        (r"OutOfMemoryError|CUDA out of memory|out of memory", _out_of_memory),
        (
            r"Address already in use|EADDRINUSE|failed to listen on any local network address|Errno 98"
            r"|[Pp]ort (?P<port>\d+) is (?:already in use|not available)",
            _simple(
                Cause.PORT_IN_USE,
                "A port is taken: {message}",
                "Find the other server (ss -ltnp) and end it.",
            ),
        ),
        (
            r"NCCL|ncclUnhandled|ncclSystem|DistBackendError|ProcessGroupNCCL|DistStoreError|DistNetworkError",
            _simple(
                Cause.NCCL,
                "The GPUs could not talk to each other {stage}: {message}",
                "Check NCCL_* and CUDA_VISIBLE_DEVICES in the unit, shared memory, and that no other job"
                " holds the GPUs; NCCL_DEBUG=INFO tells more.",
            ),
        ),
        (r"config file at '(?P<path>[^']+)' is not a valid JSON", _bad_config),
        (r"Repo id must be in the form.*?: '(?P<path>[^']+)'", _missing_model),
        (
            r"(?P<path>\S+) (?:does not appear to have a file named|is not a local folder and is not a valid)"
            r"|Cannot find any model weights with [`'][^`']+|Can't load the configuration of '[^']+'"
            r"|GatedRepoError|RepositoryNotFoundError|LocalEntryNotFoundError|OfflineModeIsEnabled"
            r"|RevisionNotFoundError|FileNotFoundError",
            _missing_model,
        ),
        (
            r"SafetensorError|deserializ|incomplete metadata|invalid header",
            _simple(
                Cause.BAD_WEIGHTS, "A weight file is damaged or cut off: {message}", "Fetch the model again."
            ),
        ),
        (
            r"DFLASH (?:target_layer_ids|fc\.weight|config\.|sliding_attention|dflash_config|draft)"
            r"|Invalid DFLASH|Unsupported DFLASH|DFlash layer selection|DFLASH requires draft"
            r"|DFLASH target_hidden",
            _bad_drafter,
        ),
        (
            r"No space left on device",
            _simple(Cause.DISK_FULL, "A disk is full: {message}", "Free space (df -h)."),
        ),
        (
            r"PermissionError|Permission denied",
            _simple(
                Cause.PERMISSION,
                "The service's user may not do it: {message}",
                "Check owner, mode and User=.",
            ),
        ),
        (r"^(?:ModuleNotFoundError|ImportError)|undefined symbol|cannot open shared object", _import),
        (r"^(?:ValueError|AssertionError|NotImplementedError|TypeError|KeyError)", _rule),
        (
            r"device-side assert triggered",
            _simple(
                Cause.CRASH,
                "A CUDA kernel's own check failed {stage}, which ends the whole server; on 0.5.11 a token id"
                " beyond the vocabulary in a request does that.",
                "Restart it, and look at the request that came just before.",
            ),
        ),
        (
            r"illegal memory access|CUDA error|cudaError|CUBLAS_STATUS",
            _simple(
                Cause.CRASH,
                "A CUDA error ended the server {stage}: {message}",
                "Restart it; if it recurs, try without the last change.",
            ),
        ),
    )
]
