"""What a unit says where its files are unusual, and what is said when they are wrong."""

from __future__ import annotations

import pytest
from host.unit.offline import Offline

from ddtui.host.unit.facts import HostFacts
from ddtui.host.unit.read import UnitError, UnitReading, read_unit
from ddtui.host.unit.tree import Tree

PYTHON = "/opt/venv/bin/python3 -m sglang.launch_server"
UNIT = "/etc/systemd/system/s.service"


def read(body: str | bytes, more: dict[str, str] | None = None, **facts: object) -> UnitReading:
    text = body if isinstance(body, bytes) else body.encode()
    return read_unit(Offline({UNIT: b"[Service]\n" + text, **(more or {})}), "s", facts=HostFacts(**facts))  # type: ignore[arg-type]


def argv(body: str | bytes, **facts: object) -> list[str]:
    reading = read(body, **facts)
    assert reading.argv is not None
    return list(reading.argv)


# -- lines -------------------------------------------------------------------------------------------------------
def test_a_blank_line_ends_the_value_and_what_follows_is_not_in_force() -> None:
    reading = read(f"ExecStart={PYTHON} --tp 8 \\\n\n  --speculative-ddtree-budget 8\nRestart=no\n")
    assert reading.flags == {"--tp": "8"}
    assert reading.not_in_force == {"--speculative-ddtree-budget": "8"}
    assert reading.line is None
    assert any(f"{UNIT}:4" in w and "ignores" in w for w in reading.warnings)


def test_a_backslash_with_a_blank_behind_it_continues_nothing() -> None:
    reading = read(f"ExecStart={PYTHON} --a 1 \\ \n  --speculative-num-steps 5\n")
    assert reading.launch_argv is not None and reading.launch_argv[-1] == "\\"
    assert reading.not_in_force == {"--speculative-num-steps": "5"}


def test_a_last_backslash_swallows_the_next_key() -> None:
    reading = read(f"ExecStart={PYTHON} --port 1 \\\nRestart=no\n")
    assert reading.flags == {"--port": ["1", "Restart=no"]}
    assert "Restart=no" in (reading.launch_argv or ())


def test_windows_line_ends_and_a_byte_order_mark_do_no_harm() -> None:
    assert argv(f"ExecStart={PYTHON} --a 1 \\\r\n  --b 2\r\nRestart=no\r\n")[-2:] == ["--b", "2"]
    tree = Offline({UNIT: b"\xef\xbb\xbf[Service]\nExecStart=/bin/true --x\n"})
    assert read_unit(tree, "s").exec_start == (("/bin/true", "--x"),)


def test_a_line_with_a_byte_that_is_not_utf8_does_not_count() -> None:
    reading = read(b"Environment=A=1\nEnvironment=B=\xff\nExecStart=/bin/true\n")
    assert reading.env == {"A": "1"}
    assert any(":3: a byte that is not UTF-8" in w for w in reading.warnings)


def test_keys_are_case_sensitive_and_sections_matter() -> None:
    reading = read("execstart=/bin/a\nExecStart=/bin/true\n[Install]\nExecStart=/bin/b\n")
    assert reading.exec_start == (("/bin/true",),)


def test_a_broken_section_header_is_told_with_its_line() -> None:
    reading = read_unit(Offline({UNIT: "[Service\nExecStart=/bin/true\n"}), "s")
    assert reading.problems[0].startswith(f"{UNIT}:1: invalid section header")


# -- what systemd refuses ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('ExecStart=/bin/true "open\n', f'{UNIT}:2: a quote " that is never closed'),
        ('ExecStart=/bin/true a \\\n  b \\\n  "open\n', f"{UNIT}:4: a quote"),
        ("ExecStart=/bin/true\nExecStart=/bin/true\n", f"{UNIT}:3: a second ExecStart="),
        ("ExecStart=bin/true\n", f"{UNIT}:2: bin/true is neither"),
        ("ExecStart=/bin/\n", f"{UNIT}:2: /bin/ is a folder"),
        ("ExecStart=/bin/true 50%x\n", f"{UNIT}:2: %x is no specifier"),
        ("Restart=no\n", f"{UNIT} has no ExecStart="),
        ("ExecStart=/bin/true\nExecStart=\n", f"{UNIT} has no ExecStart="),
        (
            "EnvironmentFile=/etc/gone\nExecStart=/bin/true\n",
            f"{UNIT}:2: the environment file /etc/gone is not there",
        ),
    ],
)
def test_a_unit_that_systemd_refuses_is_told_in_a_sentence(body: str, said: str) -> None:
    assert read(body).problems[0].startswith(said)


def test_a_masked_unit_is_told() -> None:
    tree = Offline(
        {"/usr/lib/systemd/system/s.service": f"[Service]\nExecStart={PYTHON}\n"}, {UNIT: "/dev/null"}
    )
    assert read_unit(tree, "s").problems == ("s.service is masked: it cannot be started",)


def test_a_unit_that_does_not_exist_is_told() -> None:
    with pytest.raises(UnitError, match=r"there is no unit nope\.service"):
        read_unit(Offline({}), "nope")


def test_a_unit_that_starts_no_server_is_told() -> None:
    assert read("ExecStart=/usr/bin/nginx -g x\n").warnings == (
        "no command that starts a server was found in s.service",
    )


# -- the command -------------------------------------------------------------------------------------------------
def test_prefixes_are_no_part_of_the_command() -> None:
    for prefix in ("-", ":", "+", "!", "!!", "-:", "|"):
        assert argv(f"ExecStart={prefix}/bin/true x\n") == ["/bin/true", "x"]
    reading = read("ExecStart=@/opt/venv/bin/python3 sgl -m sglang.launch_server --tp 8\n")
    assert reading.launch_argv == ("sgl", "-m", "sglang.launch_server", "--tp", "8")
    assert reading.python == "/opt/venv/bin/python3"


def test_without_expansion_dollars_stay() -> None:
    assert argv("Environment=A=1\nExecStart=:/bin/true $A ${A} $$\n")[1:] == ["$A", "${A}", "$$"]


def test_a_variable_in_quotes_is_still_split() -> None:
    assert argv('Environment="A=x y"\nExecStart=/bin/true "$A" ${A} a${A}b $B ${B} "${B}"\n')[1:] == [
        *("x", "y", "x y", "ax yb", "", ""),
    ]


def test_specifiers_of_an_instance() -> None:
    tree = Offline(
        {"/etc/systemd/system/a-b@.service": "[Service]\nExecStart=/bin/true %i %I %p %j %n %N %f\n"}
    )
    reading = read_unit(tree, "a-b@x\\x2dy-z.service")
    assert reading.exec_start == (
        ("/bin/true", "x\\x2dy-z", "x-y/z", "a-b", "b", "a-b@x\\x2dy-z.service", "a-b@x\\x2dy-z", "/x-y/z"),
    )


def test_a_specifier_that_is_not_known_here_stays_and_is_told() -> None:
    reading = read(f"ExecStart={PYTHON} --host %H\n")
    assert reading.flags == {"--host": "%H"}
    assert any("%H" in w for w in reading.warnings)
    assert read(f"ExecStart={PYTHON} --host %H\n", hostname="gpu1").flags == {"--host": "gpu1"}


def test_the_environment_of_a_user_unit_is_its_account() -> None:
    tree = Offline(
        {"/home/u/.config/systemd/user/s.service": "[Service]\nExecStart=/bin/true %h %u %U %t ${HOME}\n"}
    )
    facts = HostFacts(home="/home/u", user="u", uid=1000)
    assert read_unit(tree, "s", "user", facts).argv == (
        "/bin/true",
        "/home/u",
        "u",
        "1000",
        "/run/user/1000",
        "/home/u",
    )


def test_home_of_a_system_unit_is_its_users() -> None:
    passwd = {"/etc/passwd": "root:x:0:0::/root:/bin/sh\nllm:x:1001:1001::/data/llm:/bin/sh\n"}
    assert read("User=llm\nExecStart=/bin/true ${HOME} %h\n", passwd).argv == (
        "/bin/true",
        "/data/llm",
        "/root",
    )


# -- environment -------------------------------------------------------------------------------------------------
def test_files_beat_lines_and_unset_comes_last() -> None:
    body = (
        "EnvironmentFile=/e1\nEnvironmentFile=-/gone\nEnvironmentFile=/e2\nEnvironment=A=line B=line C=line D=line\n"
        "UnsetEnvironment=C D=other\nExecStart=/bin/true\n"
    )
    reading = read(body, {"/e1": "A=1\nE=1\n", "/e2": "A=2\nexport F=1\n"})
    assert reading.env == {"A": "2", "B": "line", "D": "line", "E": "1"}


def test_an_empty_environment_line_resets() -> None:
    assert read("Environment=A=1\nEnvironment=\nEnvironment=B=2\nExecStart=/bin/true\n").env == {"B": "2"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A=plain words  ", "plain words"),
        ("A='single $x \\n' ", "single $x \\n"),
        ('A="double \\"q\\" \\$x \\n"', 'double "q" $x \\n'),
        ('A="two\nlines"', "two\nlines"),
        ("A=joined \\\n  on", "joined   on"),
        ("A=back\\slash", "backslash"),
        ("A=a # b", "a # b"),
        ("  A = x", "x"),
        ("A='a''b'\"c\" d", "abcd"),
        ("A=", ""),
        ("# c\nA=1\n;x\n", "1"),
        ("A=1\r\nB=2\r\n", "1"),
        ("A=$HOME", "$HOME"),
    ],
)
def test_values_of_environment_files(text: str, value: str) -> None:
    assert read("EnvironmentFile=/e\nExecStart=/bin/true\n", {"/e": text}).env["A"] == value


# -- where the server is -----------------------------------------------------------------------------------------
def test_flags_are_read_with_the_place_of_each() -> None:
    reading = read(
        f"Environment=B=8\nEnvironmentFile=/e\nExecStart={PYTHON} \\\n --tp 4 --budget ${{B}} \\\n --port ${{P}}\n",
        {"/e": "\nP=1\n"},
    )
    sources = {name: str(source) for name, source in reading.flag_sources.items()}
    assert sources == {"--tp": f"{UNIT}:5", "--budget": f"{UNIT}:2", "--port": "/e:2"}


def test_a_script_that_is_not_there_is_told() -> None:
    assert any("/opt/gone.sh is not there" in w for w in read("ExecStart=/bin/bash /opt/gone.sh\n").warnings)


def test_what_only_running_a_script_tells_is_shown_as_written_and_told() -> None:
    script = f"#!/bin/bash\nN=$(nvidia-smi -L | wc -l)\nexec {PYTHON} --tp $N --port $((RANDOM % 9))\n"
    reading = read("ExecStart=/opt/run.sh\n", {"/opt/run.sh": script})
    assert reading.flags == {"--tp": "$(nvidia-smi -L | wc -l)", "--port": "$((RANDOM % 9))"}
    assert any(
        "/opt/run.sh:2: $(nvidia-smi" in w and "known only when it runs" in w for w in reading.warnings
    )


def test_bad_syntax_in_a_script_is_told_with_its_line() -> None:
    reading = read(
        "ExecStart=/opt/run.sh\n",
        {"/opt/run.sh": "#!/bin/sh\necho ok\nexec python -m sglang.launch_server 'x\n"},
    )
    assert reading.problems == ("/opt/run.sh:3: a quote ' that is never closed",)


def test_bad_yaml_is_told_with_its_line() -> None:
    reading = read(f"ExecStart={PYTHON} --config /c.yaml\n", {"/c.yaml": "a: 1\nb: [1, 2\nc: 3\n"})
    assert reading.problems[0].startswith("SGLang's --config file cannot be read: /c.yaml:3: no valid YAML")


def test_a_config_file_named_with_an_equals_sign_is_not_looked_at() -> None:
    reading = read(f"ExecStart={PYTHON} --config=/c.yaml\n", {"/c.yaml": "tp: 8\n"})
    assert reading.effective_flags is None


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("/usr/bin/python3 -u -m sglang.launch_server --tp 8", "sglang"),
        ("/usr/bin/python3 -X dev -W ignore -um sglang.launch_server", "sglang"),
        ("/opt/v/bin/python /opt/v/bin/sglang serve --tp 8", "sglang"),
        ("/usr/bin/python3 /src/sglang/python/sglang/launch_server.py", "sglang"),
        ("/opt/v/bin/sglang serve", "sglang"),
        ("/usr/bin/python3 -m sglang_router.launch_router --port 1", "sglang-router"),
        ("/usr/bin/python3 -m vllm.entrypoints.openai.api_server --model x", "vllm"),
        ("/usr/bin/docker run vllm/vllm-openai:v1 --model x", "vllm"),
        ("/opt/llama.cpp/build/bin/llama-server -m x.gguf", "llama.cpp"),
        ("/usr/bin/ollama serve", "ollama"),
        ("/usr/bin/nginx", None),
    ],
)
def test_engines_are_recognised(command: str, engine: str | None) -> None:
    assert read(f"ExecStart={command}\n").engine == engine


@pytest.mark.parametrize(
    ("start", "python"),
    [
        ("ExecStart=/opt/venv/bin/python3.12 -m sglang.launch_server", "/opt/venv/bin/python3.12"),
        ("ExecStart=/opt/venv/bin/sglang serve", "/opt/venv/bin/python"),
        (
            "Environment=PATH=/opt/v/bin:/usr/bin\nExecStart=/usr/bin/env python -m sglang.launch_server",
            "/opt/v/bin/python",
        ),
        ("ExecStart=/bin/bash -c '. /v/bin/activate; exec python -m sglang.launch_server'", "/v/bin/python"),
        ("WorkingDirectory=/p\nExecStart=/usr/bin/uv run sglang serve", "/p/.venv/bin/python"),
        (
            "ExecStart=/opt/conda/bin/conda run -p /envs/x python -m sglang.launch_server",
            "/envs/x/bin/python",
        ),
        (
            "ExecStart=/bin/bash -c '. /c/etc/profile.d/conda.sh; conda activate x; python -m sglang.launch_server'",
            "/c/envs/x/bin/python",
        ),
        (
            "ExecStart=/bin/bash -c 'source /c/bin/activate x && exec python3 -m sglang.launch_server'",
            "/c/envs/x/bin/python3",
        ),
        ("ExecStart=/usr/bin/docker run img python3 -m sglang.launch_server", None),
    ],
)
def test_the_services_interpreter_is_told_where_it_can_be(start: str, python: str | None) -> None:
    assert read(start + "\n").python == python


@pytest.mark.parametrize(
    ("settings", "log"),
    [
        ("", "journal"),
        ("StandardOutput=append:/var/log/a.log", "file:/var/log/a.log"),
        ("StandardOutput=file:/a\nStandardError=journal", "journal"),
        ("StandardOutput=journal\nStandardError=truncate:/b", "file:/b"),
        ("StandardOutput=null", "null"),
    ],
)
def test_where_the_lines_go(settings: str, log: str) -> None:
    assert read(f"{settings}\nExecStart={PYTHON}\n").log == log


def test_an_alias_leads_to_the_unit_and_its_own_drop_ins() -> None:
    real = "/usr/lib/systemd/system/sglang.service"
    files = {
        real: f"[Service]\nExecStart={PYTHON}\n",
        "/etc/systemd/system/sglang.service.d/a.conf": "[Service]\nEnvironment=A=1\n",
        "/etc/systemd/system/llm.service.d/b.conf": "[Service]\nEnvironment=B=1\n",
    }
    reading = read_unit(Offline(files, {"/etc/systemd/system/llm.service": real}), "llm")
    assert reading.unit == "sglang.service"
    assert reading.env == {"A": "1", "B": "1"}


def test_files_that_are_wanted_are_noted_in_few_rounds() -> None:
    """What a caller with a slow link goes through: read, fetch what is wanted, read again."""
    host = {
        UNIT: "[Service]\nEnvironmentFile=/e\nExecStart=/opt/run.sh\n",
        "/etc/systemd/system/s.service.d/a.conf": "[Service]\nEnvironment=A=1\n",
        "/e": "B=2\n",
        "/opt/run.sh": f"#!/bin/sh\n. /opt/more\nexec {PYTHON} --config $C\n",
        "/opt/more": "C=/c.yaml\n",
        "/c.yaml": "tp: 8\n",
    }
    tree, rounds = Tree(), 0
    while True:
        try:
            reading = read_unit(tree, "s", "system")
        except UnitError:
            break
        if not tree.wanted:
            break
        rounds += 1
        files = {p: host[p].encode() if p in host else None for p in tree.wanted.files | tree.wanted.programs}
        folders = {
            d: tuple(p.rpartition("/")[2] for p in host if p.rpartition("/")[0] == d)
            for d in tree.wanted.folders
        }
        tree = tree.with_known(
            files, folders, dict.fromkeys(tree.wanted.kinds), dict.fromkeys(tree.wanted.links)
        )
    assert rounds <= 5
    assert reading.effective_flags == {"--tp": "8"}
    assert set(reading.files) == set(host)
