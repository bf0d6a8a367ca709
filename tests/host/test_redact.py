"""Secrets never get past the source, in whatever form they come; what is none stays readable."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui import redact

SECRET = "s3cr3t-Val:ue/42"

IN_TEXT = [
    f"--api-key {SECRET}",
    f"--api-key={SECRET}",
    f"--api-key '{SECRET}'",
    f"--admin-api-key {SECRET} --port 30000",
    f"API_KEY={SECRET}",
    f'Environment="API_KEY={SECRET}"',
    f"export HF_TOKEN={SECRET}",
    f"SGLANG_ADMIN_API_KEY = {SECRET}",
    f"ServerArgs(model_path='/m', api_key='{SECRET}', port=30000)",
    f"Namespace(api_key='{SECRET}')",
    f"['--api-key', '{SECRET}', '--port', '1']",
    json.dumps({"api_key": SECRET}),
    json.dumps(json.dumps({"api_key": SECRET})),
    json.dumps({"nested": {"auth_token": SECRET}}),
    f"api_key: {SECRET}",
    f"password: {SECRET}",
    f"DB_PASSWORD='{SECRET}'",
    f"aws_secret_access_key = {SECRET}",
    f"Cookie: {SECRET}",
    f"Authorization: Bearer {SECRET}",
    f"Authorization: Basic {SECRET}",
    f"authorization: {SECRET}",
    f"curl -H 'Authorization: Bearer {SECRET}' http://x",
    f"https://me:{'s3cr3t-Val-ue_42'}@example.org/repo",
    f"hf_token='{SECRET}'",
    f"client_secret={SECRET}",
    f"credentials={SECRET}",
]


@pytest.mark.parametrize("text", IN_TEXT)
def test_a_secret_in_text_is_masked(text: str) -> None:
    safe = redact.redact(text)
    for part in (SECRET, "s3cr3t", "Val-ue", "ue/42"):
        assert part not in safe
    assert "<secret:" in safe


SHAPES = [
    "hf_abcdefghijklmnopqrstuvwx",
    "sk-proj-abcdefghij0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_abcdefghijklmnop0123",
    "github_pat_11ABCDEFG0abcdefghijkl",
    "glpat-abcdefghij0123456789",
    "xoxb-1234567890-abcdef",
    "nvapi-abcdefghijklmnopqrst",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijk",
]


@pytest.mark.parametrize("token", SHAPES)
def test_tokens_known_by_their_shape_are_masked_wherever_they_stand(token: str) -> None:
    for text in (
        token,
        f"using {token} now",
        f"({token})",
        f'"{token}"',
        f"https://{token}@huggingface.co/x",
    ):
        assert token not in redact.redact(text)


def test_a_private_key_is_masked_whole() -> None:
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\nBBBB\n-----END OPENSSH PRIVATE KEY-----"
    assert redact.redact(f"before\n{key}\nafter") == f"before\n{redact.mask(key)}\nafter"


INNOCENT = [
    "Decode batch, #running-req: 8, #token: 12345, token usage: 0.12, accept len: 3.40, gen throughput (token/s): 98",
    "Prefill batch, #new-seq: 1, #new-token: 512, #cached-token: 0, full token usage: 0.00, #queue-req: 0,",
    "--tokenizer-path /models/Kimi --max-total-tokens 100000 --max-prefill-tokens 8192 --tokenizer-mode auto",
    "--ssl-keyfile /etc/ssl/key.pem --speculative-num-draft-tokens 9 --token-usage-threshold 0.9",
    "HF_TOKEN_PATH=/root/.cache/token  HF_HUB_DISABLE_IMPLICIT_TOKEN=1",
    "KV Cache is allocated. #tokens: 2048, K size: 1.2 GB, V size: 1.2 GB",
    "api_key=None, admin_api_key=None, hf_token=None",
    "--api-key ${SGLANG_API_KEY} --admin-api-key $KEY",
    "key: 5, keys 12, monkey=3, keyboard=us, turkey='x'",
    '{"mask_token": "<|mask|>", "mask_token_id": 163606, "eos_token": "</s>", "pad_token": "[PAD]"}',
    "basic authentication failed; the token expired; password required; digest mismatch",
    "2.0s/it, http://127.0.0.1:30000/health?x=1, user@host:/path",
    "authors=3, author: Jane Doe, unauthorized request",
    "task-force, risk-averse, disk-full",
]


@pytest.mark.parametrize("text", INNOCENT)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert redact.redact(text) == text


def test_an_argv_is_masked_word_by_word() -> None:
    argv = [
        *("python", "-m", "sglang.launch_server", "--api-key", "plain1", "--port", "30000"),
        *("--admin-api-key=plain2", "HF_TOKEN=plain3", "--json-model-override-args", '{"token": "plain4"}'),
        *("--tokenizer-path", "/m", "--api-key", "-dash-first", "--trust-remote-code"),
    ]
    safe = redact.argv(argv)
    assert len(safe) == len(argv)
    assert [word for word in safe if "plain" in word or "dash" in word] == []
    kept = [word for word, before in zip(safe, argv, strict=True) if word == before]
    assert kept == [
        *("python", "-m", "sglang.launch_server", "--api-key", "--port", "30000"),
        *("--json-model-override-args", "--tokenizer-path", "/m", "--api-key", "--trust-remote-code"),
    ]


def test_a_secret_flag_without_a_value_does_not_swallow_the_next_flag() -> None:
    assert redact.argv(["--api-key", "--port", "30000"]) == ("--api-key", "--port", "30000")


def test_environment_variables_are_masked_by_name() -> None:
    safe = redact.environment({"HF_TOKEN": "abc123xyz", "CUDA_VISIBLE_DEVICES": "0,1", "API_KEY": "${KEY}"})
    assert safe["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert safe["API_KEY"] == "${KEY}"
    assert re.fullmatch(r"<secret:[0-9a-f]{6}>", safe["HF_TOKEN"])


def test_a_secret_once_seen_is_masked_wherever_it_turns_up_again() -> None:
    redact.argv(["--api-key", "correct-horse-battery"])
    assert "correct-horse-battery" not in redact.redact("GET /x?k=correct-horse-battery HTTP/1.1")


def test_equal_secrets_have_equal_masks_and_others_do_not() -> None:
    assert redact.mask("one-secret") == redact.mask("one-secret")
    assert redact.mask("one-secret") != redact.mask("another-secret")


@given(st.text(max_size=200))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact.redact(text)
    assert redact.redact(once) == once


@pytest.mark.parametrize("text", [*IN_TEXT, *SHAPES, *INNOCENT])
def test_redacting_twice_changes_nothing_in_the_known_forms(text: str) -> None:
    once = redact.redact(text)
    assert redact.redact(once) == once


@given(
    st.sampled_from(["--api-key {}", "--api-key={}", "API_KEY={}", "api_key='{}'", '{{"api_key": "{}"}}']),
    st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~+/=:@%", min_size=6),
)
def test_no_value_of_a_secret_setting_survives(form: str, secret: str) -> None:
    word = "Q" + secret  # no plain word such as "none", no flag
    assert word not in redact.redact(form.format(word))
