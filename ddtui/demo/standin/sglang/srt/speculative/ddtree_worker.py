"""The fork's DDTree: the drafter's block gives a distribution per position; the best tree of them is
verified.

Built on the DFLASH worker, so the draft window of `--speculative-dflash-draft-window-size` is honoured here
too.
"""

from __future__ import annotations

from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.dflash_worker import DFlashWorker


class DDTreeWorker(DFlashWorker):
    def __init__(self, server_args: ServerArgs, target: ModelConfig, drafter: ModelConfig) -> None:
        super().__init__(server_args, target, drafter)
        assert server_args.speculative_ddtree_budget is not None
        self.tree_budget = server_args.speculative_ddtree_budget
        self.max_tree_nodes = self.tree_budget + 1  # the root is the last committed token
        # candidates per position: no more than the tree has nodes, no more than the cap
        topk_cap = server_args.speculative_ddtree_topk_cap
        self.topk = min(self.tree_budget, target.vocab_size, topk_cap or self.tree_budget)

    def startup_lines(self) -> list[str]:
        return [
            *super().startup_lines(),
            f"Initialized DDTree worker. block_size={self.block_size}, tree_budget={self.tree_budget}, "
            f"max_tree_nodes={self.max_tree_nodes}, topk_cap={self.topk}",
        ]
