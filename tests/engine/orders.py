"""A start of SGLang 0.5.14 or later, as its sources order it: both weights, the runner, both pools, all graphs."""

from __future__ import annotations


def bar(label: str, total: int, *, completed: bool = False) -> list[str]:
    """Every state of a tqdm bar, each a line of its own as a log file shows it live."""
    states = []
    for done in range(total + 1):
        percent = f"{100 * done // total:3d}%"
        shown = f"{percent} Completed | {done}/{total}" if completed else f"{percent}|##   | {done}/{total}"
        states.append(f"\r{label}: {shown} [00:01<00:01,  1.0it/s]")
    return states


def new_order(*, ranks: int = 1, version_23: bool = False) -> list[str]:
    """The lines, by `ranks` tensor-parallel ranks."""
    at = "[2026-12-01 02:54:32"
    names = [f" TP{rank}" if ranks > 1 else "" for rank in range(ranks)]
    lines = [f"{at}] server_args=ServerArgs(model_path='/m', speculative_draft_model_path='/d')"]

    def all_ranks(text: str) -> None:
        lines.extend(f"{at}{name}] {text}" for name in names)

    join = "Init parallel" if version_23 else "Init torch distributed"
    all_ranks(f"{join} begin.")
    all_ranks(f"{join} ends. elapsed=3.10 s" + ("" if version_23 else ", mem usage=0.20 GB"))
    all_ranks("Load weight begin. avail mem=139.13 GB")
    lines.extend(bar("Loading safetensors checkpoint shards", 61, completed=True))
    all_ranks(
        "Load weight end. elapsed=93.1 s, type=KimiK25ForConditionalGeneration, avail mem=60.0 GB, mem usage=79.13 GB."
    )
    all_ranks("Load weight begin. avail mem=60.00 GB")
    lines.extend(bar("Multi-thread loading shards", 2, completed=True))
    all_ranks("Load weight end. elapsed=1.1 s, type=DFlashDraftModel, avail mem=59.0 GB, mem usage=1.00 GB.")
    lines.append(
        f"{at}{names[0]}] Initialized DFLASH draft runner. attention_backend=fa3, model=DFlashDraftModel,"
        " block_size=8, draft_window_size=2048, compact_cache=True"
    )
    all_ranks("Using KV cache dtype: torch.bfloat16")
    for size in ("KV size: 30.00 GB", "K size: 2.00 GB, V size: 2.00 GB"):
        all_ranks(f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: 500000, {size}")
        all_ranks("Memory pool end. avail mem=20.00 GB")
    for what, steps in (("target verify", 23), ("draft verify", 23), ("target prefill", 58)):
        begin = "" if version_23 else ", bs=[1, 2, 4, 8]"
        all_ranks(
            f"Capture {what} CUDA graph begin. backend=full, num_tokens_per_bs=8{begin}, avail mem=20.00 GB"
        )
        lines.extend(bar("Capturing batches (bs=4 avail_mem=20.00 GB)", steps))
        end = "bs=[1, 2, 4, 8], " if version_23 else ""
        all_ranks(
            f"Capture {what} CUDA graph end. {end}elapsed=1.50 s, mem usage=0.50 GB, avail mem=19.50 GB."
        )
    lines += [
        f"{at}{names[0]}] max_total_num_tokens=500000, chunked_prefill_size=8192, max_prefill_tokens=16384,"
        " max_running_requests=48, context_len=262144, available_gpu_mem=16.21 GB",
        f"{at}] INFO:     Started server process [4792]",
        f"{at}] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
        f"{at}{names[0]}] Prefill batch, #new-seq: 1, #new-token: 8, #cached-token: 0",
        f"{at}] The server is fired up and ready to roll!",
    ]
    return lines
