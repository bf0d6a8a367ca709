"""The prefix cache: a radix tree over token ids, least recently used leaves go first.

Ids are kept as 4 bytes each, so that a comparison of 100,000 tokens is one of bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

WIDTH = 4


def pack(ids: Sequence[int]) -> bytes:
    return array("I", ids).tobytes()


def common(a: bytes, b: bytes) -> int:
    """Bytes that both begin with, in whole tokens."""
    low, high = 0, min(len(a), len(b)) // WIDTH
    if a[: high * WIDTH] == b[: high * WIDTH]:
        return high * WIDTH
    while low < high:
        middle = (low + high + 1) // 2
        if a[low * WIDTH : middle * WIDTH] == b[low * WIDTH : middle * WIDTH]:
            low = middle
        else:
            high = middle - 1
    return low * WIDTH


@dataclass
class Node:
    key: bytes = b""
    parent: Node | None = None
    children: dict[bytes, Node] = field(default_factory=dict)
    used: int = 0


class RadixCache:
    def __init__(self) -> None:
        self._clock = count(1)
        self.reset()

    def reset(self) -> None:
        self._root = Node()
        self.tokens = 0  # held in the tree

    def match(self, key: bytes) -> int:
        """Tokens of the longest cached prefix."""
        node, at = self._root, 0
        while at < len(key):
            child = node.children.get(key[at : at + WIDTH])
            if child is None:
                break
            child.used = next(self._clock)
            same = common(child.key, key[at:])
            at += same
            if same < len(child.key):
                break
            node = child
        return at // WIDTH

    def insert(self, key: bytes) -> None:
        node, at = self._root, 0
        while at < len(key):
            head = key[at : at + WIDTH]
            child = node.children.get(head)
            if child is None:
                leaf = Node(key[at:], node, used=next(self._clock))
                node.children[head] = leaf
                self.tokens += len(leaf.key) // WIDTH
                return
            same = common(child.key, key[at:])
            if same < len(child.key):
                self._split(child, same)
                child = node.children[head]
            child.used = next(self._clock)
            node, at = child, at + same

    def _split(self, node: Node, at: int) -> None:
        """Put a node before `node` that holds the first `at` bytes of its key."""
        assert node.parent is not None
        upper = Node(node.key[:at], node.parent, used=node.used)
        node.parent.children[node.key[:WIDTH]] = upper
        node.key, node.parent = node.key[at:], upper
        upper.children[node.key[:WIDTH]] = node

    def shrink_to(self, tokens: int) -> None:
        """Forget the least recently used ends until no more than `tokens` are held."""
        while self.tokens > max(tokens, 0):
            leaf = min(self._leaves(), key=lambda node: node.used)
            assert leaf.parent is not None
            del leaf.parent.children[leaf.key[:WIDTH]]
            self.tokens -= len(leaf.key) // WIDTH

    def _leaves(self) -> list[Node]:
        found, stack = [], list(self._root.children.values())
        while stack:
            node = stack.pop()
            if node.children:
                stack.extend(node.children.values())
            else:
                found.append(node)
        return found
