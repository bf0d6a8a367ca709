"""The response reader and the event reader: the same result however the bytes are cut, and strict."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtui.bench.http_stream import EventReader, ResponseReader

CAPTURES = Path(__file__).parents[1] / "captures" / "sglang-0.5.11" / "http"


def read(data: bytes, cuts: list[int] | None = None, *, end: bool = True) -> tuple[ResponseReader, bytes]:
    reader, body = ResponseReader(), b""
    edges = [0, *sorted(cuts or []), len(data)]
    for start, stop in itertools.pairwise(edges):
        body += reader.feed(data[start:stop])
    if end and not reader.complete:
        reader.end()
    return reader, body


def events(data: bytes, cuts: list[int] | None = None) -> list[bytes]:
    reader, found = EventReader(), []
    edges = [0, *sorted(cuts or []), len(data)]
    for start, stop in itertools.pairwise(edges):
        found += [event.data for event in reader.feed(data[start:stop])]
    return found


def chunked(*pieces: bytes) -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + body


class TestResponse:
    def test_chunked_body_is_the_pieces_joined(self) -> None:
        reader, body = read(chunked(b"one", b"two\r\n", b"\r\n0\r\n\r\n"))
        assert (reader.status, body, reader.complete, reader.keep_alive) == (
            200,
            b"onetwo\r\n\r\n0\r\n\r\n",
            True,
            True,
        )

    def test_every_single_cut_gives_the_same(self) -> None:
        data = chunked("grüße 🙂".encode(), b"data: x\n\n")
        whole = read(data)[1]
        for cut in range(len(data)):
            reader, body = read(data, [cut])
            assert (reader.complete, body) == (True, whole)

    def test_one_byte_at_a_time_gives_the_same(self) -> None:
        data = chunked("grüße 🙂".encode(), b"data: x\n\n")
        assert read(data, list(range(len(data))))[1] == read(data)[1]

    def test_content_length_ends_the_body_and_keeps_what_follows(self) -> None:
        reader, body = read(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200")
        assert (reader.status, reader.reason, body) == (400, "Bad Request", b"hello")
        assert reader.complete and reader.leftover == b"HTTP/1.1 200"

    def test_a_body_without_length_is_complete_when_the_connection_closes(self) -> None:
        reader, body = read(b"HTTP/1.0 200 OK\r\n\r\nabc", end=False)
        assert not reader.complete
        reader.end()
        assert reader.complete and body == b"abc" and not reader.keep_alive

    @pytest.mark.parametrize("cut", [10, 60, -8, -5, -3, -1])
    def test_a_chunked_body_that_is_cut_is_not_complete(self, cut: int) -> None:
        reader, _ = read(chunked(b"one", b"two")[:cut])
        assert not reader.complete

    def test_a_sized_body_that_is_cut_is_not_complete(self) -> None:
        assert not read(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")[0].complete

    def test_interim_responses_are_skipped(self) -> None:
        reader, body = read(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx")
        assert (reader.status, body) == (200, b"x")

    def test_chunk_extensions_and_trailers_are_passed_over(self) -> None:
        data = (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;name=v\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n"
        )
        reader, body = read(data, list(range(len(data))))
        assert reader.complete and body == b"abc"

    def test_headers_may_end_in_a_bare_newline_and_repeat(self) -> None:
        reader, _ = read(b"HTTP/1.1 200 OK\nX-A: 1\nx-a:2\nContent-Length: 0\n\n")
        assert reader.headers["x-a"] == "1, 2" and reader.complete

    def test_connection_close_is_heard(self) -> None:
        assert not read(b"HTTP/1.1 200 OK\r\nConnection: Close\r\ncontent-length: 0\r\n\r\n")[0].keep_alive

    def test_no_body_after_204(self) -> None:
        assert read(b"HTTP/1.1 204 No Content\r\n\r\n", end=False)[0].complete

    @pytest.mark.parametrize(
        "data",
        [
            b"hello",
            b"HTTP/2 200 OK\r\n\r\n",
            b"HTTP/1.1 2OO OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nbad name : x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-3\r\nabc\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n",
        ],
    )
    def test_what_is_not_http_is_refused_in_a_sentence(self, data: bytes) -> None:
        assert read(data)[0].malformed and read(data, list(range(len(data))))[0].malformed

    def test_headers_without_an_end_are_refused(self) -> None:
        assert read(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000)[0].malformed

    def test_what_came_before_the_fault_is_given(self) -> None:
        reader, body = read(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndefgh")
        assert reader.malformed and body == b"abcdef"

    @settings(max_examples=150, deadline=None)
    @given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.data())
    def test_any_pieces_cut_anywhere(self, pieces: list[bytes], data: st.DataObject) -> None:
        whole = chunked(*pieces)
        cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=12))
        reader, body = read(whole, cuts)
        assert reader.complete and body == b"".join(pieces) and reader.leftover == b""


class TestEvents:
    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
    def test_each_kind_of_line_end(self, end: bytes) -> None:
        data = b"data: one" + end * 2 + b"data: two" + end * 2
        for cuts in ([], list(range(len(data)))):
            assert events(data, cuts) == [b"one", b"two"]

    def test_one_space_after_the_colon_is_no_data_and_need_not_be_there(self) -> None:
        assert events(b"data:x\n\ndata: x\n\ndata:  x \n\n") == [b"x", b"x", b" x "]

    def test_comments_and_unknown_fields_are_skipped(self) -> None:
        assert events(b": keep-alive\n\nretry: 5\nid: 9\n:\ndata: x\nfoo\n\n: x\n\n") == [b"x"]

    def test_several_data_lines_are_joined_by_newlines(self) -> None:
        assert events(b"data: {\ndata:  1\ndata\ndata: }\n\n") == [b"{\n 1\n\n}"]

    def test_the_name_of_an_event_is_told(self) -> None:
        (event,) = EventReader().feed(b"event: error\ndata: x\n\n")
        assert (event.name, event.data) == ("error", b"x")

    def test_a_byte_order_mark_is_passed_over(self) -> None:
        data = b"\xef\xbb\xbfdata: x\n\n"
        assert events(data) == events(data, [1]) == events(data, [2]) == events(data, [3]) == [b"x"]

    def test_characters_of_several_bytes_may_be_cut(self) -> None:
        data = "data: grüße 🙂\n\n".encode()
        for cut in range(len(data)):
            assert events(data, [cut]) == ["grüße 🙂".encode()]

    def test_a_partial_event_is_kept_as_it_is(self) -> None:
        reader = EventReader()
        assert reader.feed(b'data: {"content":"a ') == []
        rest = reader.end()
        assert rest is not None and rest.data == b'{"content":"a '

    def test_a_line_of_many_megabytes_is_one_event(self) -> None:
        data = b"data: " + b"x" * 9_000_000 + b"\n\n"
        assert [len(event) for event in events(data, list(range(0, len(data), 65_536)))] == [9_000_000]

    @settings(max_examples=200, deadline=None)
    @given(
        st.lists(st.lists(st.text("ab ü🙂:", max_size=8), min_size=1, max_size=3), max_size=5),
        st.sampled_from([b"\n", b"\r\n", b"\r"]),
        st.data(),
    )
    def test_any_events_cut_anywhere(self, asked: list[list[str]], end: bytes, data: st.DataObject) -> None:
        whole = b"".join(b"".join(b"data: " + line.encode() + end for line in lines) + end for lines in asked)
        cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=12))
        assert events(whole, cuts) == ["\n".join(lines).encode() for lines in asked]


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in CAPTURES.glob("*stream*.raw") if "sigterm" not in path.stem)
)
def test_real_answers_read_alike_in_any_pieces(name: str) -> None:
    data = (CAPTURES / f"{name}.raw").read_bytes()
    reader, body = read(data)
    found = events(body)
    rng = random.Random(name)
    for _ in range(5):
        cuts = sorted(rng.randrange(len(data)) for _ in range(40))
        again, same = read(data, cuts)
        assert (same, again.complete) == (body, reader.complete)
        assert events(body, sorted(rng.randrange(len(body) + 1) for _ in range(40))) == found
    assert reader.complete == (name != "stream_over_scheduler_crash")
