"""What the stand-in "generates": plausible Python and prose of our own, put together from templates.

The same seed gives the same text, whatever the server's speculation: greedy output depends on the prompt
alone. It solves nothing: a coding task gets a program about something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sglang.performance import uniform_bits


def _list(words: str) -> list[str]:
    return words.split()


NOUNS = _list(
    """
    order packet ticket record block frame route sensor ledger batch shard lease window sample token job
    worker cursor index segment event buffer parcel invoice gauge replica snapshot counter bucket
    session probe channel
    """
)
VERBS = _list(
    """
    collect merge rank split trim encode filter group schedule balance sort verify restore publish
    release claim refresh prune align assign close resume
    """
)
ADJECTIVES = _list(
    """
    recent stale pending local remote narrow complete partial sorted empty busy idle final early nested
    shared expected missing
    """
)
FIELDS = _list("weight length offset priority deadline size owner version latency score depth limit origin")

CODE = (
    '''def {verb}_{noun}s({noun}s, limit={number}):
    """Return the {adjective} {noun}s, at most `limit` of them."""
    kept = []
    for {noun} in {noun}s:
        if {noun}.{field} < limit:
            kept.append({noun})
    kept.sort(key=lambda item: item.{field2})
    return kept[:limit]''',
    '''class {Noun}Queue:
    """A queue of {noun}s that hands out the one with the lowest {field} first."""

    def __init__(self, capacity={number}):
        self.capacity = capacity
        self._heap = []

    def push(self, {noun}):
        if len(self._heap) >= self.capacity:
            raise OverflowError("the queue holds %d {noun}s" % self.capacity)
        heapq.heappush(self._heap, ({noun}.{field}, id({noun}), {noun}))

    def pop(self):
        return heapq.heappop(self._heap)[2]''',
    """def {verb}_by_{field}(items):
    groups = {{}}
    for item in items:
        groups.setdefault(item["{field}"], []).append(item)
    return {{key: len(values) for key, values in groups.items()}}""",
    """async def {verb}_{noun}(client, {noun}_id, retries={small}):
    for attempt in range(retries):
        try:
            response = await client.get(f"/{noun}s/{{{noun}_id}}")
        except ConnectionError:
            await asyncio.sleep(0.1 * 2 ** attempt)
            continue
        if response.status == 200:
            return response.json()
    raise LookupError(f"no {adjective} {noun} {{{noun}_id}} after {{retries}} attempts")""",
    """@dataclass(frozen=True)
class {Noun}:
    name: str
    {field}: int = {small}
    {field2}: float = 0.0

    def scaled(self, factor):
        if factor <= 0:
            raise ValueError("factor must be positive, got %r" % factor)
        return replace(self, {field}=int(self.{field} * factor))""",
    """def test_{verb}_{noun}_keeps_{adjective}_items():
    {noun} = {Noun}("{adjective}", {field}={number})
    result = {verb}({noun}, limit={small})
    assert result is not None
    assert result.{field} == {number}""",
    """def moving_{field}(values, window={small}):
    total, out = 0.0, []
    for i, value in enumerate(values):
        total += value
        if i >= window:
            total -= values[i - window]
        out.append(total / min(i + 1, window))
    return out""",
    '''def parse_{noun}(line):
    """Read one {noun} from a line such as `{noun}={number} {field}={small}`."""
    result = {{}}
    for part in line.split():
        key, _, value = part.partition("=")
        if not value:
            raise ValueError(f"{{part!r}} is not key=value")
        result[key] = int(value) if value.isdigit() else value
    return result''',
    """    def {verb}(self, {noun}):
        with self._lock:
            previous = self._{noun}s.get({noun}.name)
            if previous is not None and previous.{field} > {noun}.{field}:
                return previous
            self._{noun}s[{noun}.name] = {noun}
            self._changed.notify_all()
        return {noun}""",
    '''def {verb}_pairs({noun}s, {field}):
    """Yield neighbouring {noun}s whose {field} differs by more than {small}."""
    previous = None
    for {noun} in {noun}s:
        if previous is not None and abs({noun}.{field} - previous.{field}) > {small}:
            yield previous, {noun}
        previous = {noun}''',
    """class {Noun}Store:
    def __init__(self, path, {field}={number}):
        self.path = Path(path)
        self.{field} = {field}

    def load(self):
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines()[-self.{field}:]]""",
    '''def {verb}_tree(root):
    """Walk the {noun} tree, {adjective} nodes first."""
    stack, seen = [root], set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            raise RecursionError("a {noun} holds itself")
        seen.add(id(node))
        yield node
        stack.extend(child for child in node.children if child.{field} < {number})''',
    """def find_{field}({noun}s, target):
    low, high = 0, len({noun}s)
    while low < high:
        middle = (low + high) // 2
        if {noun}s[middle].{field} < target:
            low = middle + 1
        else:
            high = middle
    return low if low < len({noun}s) and {noun}s[low].{field} == target else -1""",
    """def format_{noun}({noun}, width={small}):
    name = {noun}.name[:width].ljust(width)
    share = {noun}.{field} / max({noun}.{field2}, 1)
    marks = "#" * int(share * {small})
    return f"{{name}} {{share:6.2f}} {{marks}}" """,
    """@pytest.mark.parametrize("{field}", [0, {small}, {number}])
def test_{noun}_accepts_any_{field}({field}):
    {noun} = make_{noun}({field}={field})
    assert {noun}.{field} == {field}
    with pytest.raises(ValueError):
        make_{noun}({field}=-1)""",
    """def retry_{verb}(action, attempts={small}, delay=0.{small}):
    for left in range(attempts - 1, -1, -1):
        try:
            return action()
        except TimeoutError as error:
            if not left:
                raise RuntimeError("the {adjective} {noun} never answered") from error
            time.sleep(delay * (attempts - left))""",
    """def count_{noun}s(lines):
    totals = collections.Counter()
    for number, line in enumerate(lines, start=1):
        head, _, rest = line.partition(":")
        if head.strip() == "{noun}":
            totals[rest.strip() or "{adjective}"] += 1
        elif head.startswith("#"):
            continue
    return totals.most_common({small})""",
    """def {verb}_intervals(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged""",
)

SENTENCES = (
    "The {adjective} {noun} is read first, since everything after it depends on its {field}.",
    "When the {field} changes, the {noun} is written again and the old one is kept for a day.",
    "A {noun} without a {field} is not an error; it is counted and left alone.",
    "In practice about {number} {noun}s arrive in a second, and most of them are {adjective}.",
    "It is tempting to {verb} every {noun} at once, but the {adjective} ones would then wait too long.",
    "The second step is slower: it has to {verb} {number} {noun}s and compare their {field}.",
    "Nobody looks at the {field} of a {adjective} {noun} until something goes wrong.",
    "We measured this on a quiet machine and again under load, and the {field} moved by {small} percent.",
    "If two {noun}s have the same {field}, the {adjective} one wins.",
    "The simplest answer is to {verb} the {noun}s in the order in which they came.",
    "That is why the {noun} carries its own {field}: the receiver should not have to ask.",
    "Older versions kept the {field} in a file beside the {noun}, which was easy to forget.",
    "There are {small} cases to tell apart, and only one of them needs a {adjective} {noun}.",
    "A reader who wants the {field} can find it in the header of the {noun}.",
    "Most of the time goes into the {noun}s that nobody asked for.",
    "The trade is plain: a larger {field} costs memory, a smaller one costs time.",
    "Once the {noun} is {adjective}, it can {verb} itself without help.",
    "What looks like a naïve rule works well: {verb} early, check the {field}, stop after {number} tries.",
    "On the next morning the {noun} was found again — {adjective}, and with a {field} of {number}.",
    "None of this matters for a single {noun}, and all of it matters for {number} of them.",
)

ENGLISH = """
the of and to in is that for it as was with be by on not he this are or his from at which but have an had
they you were their one all we can her has there been if more when will would who so no she other its may
these what them than some him time into only could new then do any my now such like our over me even most
made after also did many before must through back years where much your way well down should because each
just those people how too little state good very make world still own see men work long get here between
both life being under never day same another know while last might us great old year off come since
against go came right used take three small number first part water use find place give line set end does
kind need house read large add change play turn move live write answer question example following given
value values function returns return true false list string integer input output error file code test
class method object result user data name type key index model server request response token tokens
prompt system message assistant please explain describe text document section chapter import def self
raise try except finally elif else lambda yield async await None True False print range len int str float
dict tuple append items sorted join split format open assert pass break continue global args kwargs init
main path json logging typing dataclass field Optional property static abstract enumerate reversed
default config command process service driver report status start stop label size count offset width
height parent child node graph edge tree weight speed sample warning level context budget window block
draft verify accept step host port socket stream chunk buffer thread lock
"""


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]


def _fill(template: str, seed: int, position: int) -> str:
    bits = uniform_bits(seed, position)

    def pick(words: list[str]) -> str:
        nonlocal bits
        bits, at = divmod(bits, len(words))
        return words[at]

    noun = pick(NOUNS)
    field = pick(FIELDS)
    return template.format(
        noun=noun,
        Noun=_capital(noun),
        verb=pick(VERBS),
        adjective=pick(ADJECTIVES),
        field=field,
        field2=pick([other for other in FIELDS if other != field]),
        number=16 + bits % 900,
        small=2 + bits // 1000 % 14,
    )


def _order(count: int, seed: int, turn: int) -> list[int]:
    """The numbers below `count` in an order of this turn's own."""
    return sorted(range(count), key=lambda i: uniform_bits(seed, (turn + 1) * 1000 + i))


def blocks(seed: int, kind: str) -> Iterator[str]:
    """Text without end, a function or a few sentences at a time."""
    position = turn = 0
    templates = CODE if kind == "code" else SENTENCES
    while True:
        for at in _order(len(templates), seed, turn):
            text = _fill(templates[at], seed, position)
            position += 1
            if kind == "code":
                yield text + "\n\n\n"
            else:
                yield text + ("\n\n" if uniform_bits(seed, position) % 5 == 0 else " ")
        turn += 1


def passage(seed: int, kind: str, characters: int) -> str:
    """A text of about that many characters."""
    parts, length = [], 0
    for block in blocks(seed, kind):
        parts.append(block)
        length += len(block)
        if length >= characters:
            break
    return "".join(parts)


def natural_length(seed: int) -> int:
    """Tokens after which this output would end by itself."""
    return 180 + uniform_bits(seed, 7) % 900


def vocabulary_sources() -> list[str]:
    """Everything from which the tokenizer takes its words."""
    words = [*NOUNS, *VERBS, *ADJECTIVES, *FIELDS, *map(_capital, NOUNS), *map(_capital, VERBS)]
    plain = [re.sub(r"\{\{|\}\}", "", re.sub(r"\{\w+\}", " ", text)) for text in (*CODE, *SENTENCES)]
    return [*words, *plain, ENGLISH, *(_capital(word) for word in ENGLISH.split())]
