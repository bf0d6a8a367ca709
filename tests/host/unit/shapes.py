"""Ways in which the same server is started, each with the same flags, for tests that go over all of them."""

from __future__ import annotations

FLAGS = (
    "--model-path /srv/m --speculative-ddtree-budget 8 --cuda-graph-bs 1 2 4 --enable-metrics "
    "--served-model-name 'kimi k2' --port 30000"
)
LINES = (
    "--model-path /srv/m \\\n  --speculative-ddtree-budget 8 \\\n  --cuda-graph-bs 1 2 4 \\\n  --enable-metrics \\\n"
    "  --served-model-name 'kimi k2' \\\n  --port 30000"
)
ARGUMENTS = [
    *("--model-path", "/srv/m", "--speculative-ddtree-budget", "8", "--cuda-graph-bs", "1", "2", "4"),
    *("--enable-metrics", "--served-model-name", "kimi k2", "--port", "30000"),
]
PYTHON = "/opt/venv/bin/python3 -m sglang.launch_server"


def unit(body: str) -> dict[str, str]:
    return {"/etc/systemd/system/s.service": f"[Unit]\nDescription=x\n\n[Service]\n{body}\nRestart=always\n"}


def script(body: str, start: str = "/opt/run.sh") -> dict[str, str]:
    return {**unit(f"ExecStart={start}"), "/opt/run.sh": body}


def compose(command: str, more: str = "") -> dict[str, str]:
    return {
        **unit(
            "Type=oneshot\nRemainAfterExit=yes\nWorkingDirectory=/srv/c\nExecStart=/usr/bin/docker compose up -d"
        ),
        "/srv/c/compose.yaml": f"services:\n  llm:\n    image: lmsysorg/sglang:v0.5.11\n{command}{more}",
    }


ITEMS = [f"'{a}'" if " " in a else f'"{a}"' for a in ["python3", "-m", "sglang.launch_server", *ARGUMENTS]]

SHAPES: dict[str, dict[str, str]] = {
    "unit": unit(f"ExecStart={PYTHON} {FLAGS}"),
    "unit, lines": unit(f"ExecStart={PYTHON} \\\n  {LINES}"),
    "unit, prefixes": unit(f"ExecStart=-:{PYTHON} {FLAGS}"),
    "unit, argv0": unit(f"ExecStart=@/opt/venv/bin/python3 sgl -m sglang.launch_server {FLAGS}"),
    "unit, CRLF": {p: c.replace("\n", "\r\n") for p, c in unit(f"ExecStart={PYTHON} \\\n  {LINES}").items()},
    "unit, console script": unit(f"ExecStart=/opt/venv/bin/sglang serve {FLAGS}"),
    "drop-in": {
        **unit("ExecStart=/bin/false"),
        "/etc/systemd/system/s.service.d/zzz-site.conf": f"[Service]\nExecStart=\nExecStart={PYTHON} {FLAGS}\n",
    },
    "environment, one variable": unit(f'Environment="ARGS={FLAGS}"\nExecStart={PYTHON} $ARGS'),
    "environment, values": unit(
        f'Environment=MODEL=/srv/m BUDGET=8 "NAME=kimi k2"\nExecStart={PYTHON} --model-path ${{MODEL}} '
        "--speculative-ddtree-budget ${BUDGET} --cuda-graph-bs 1 2 4 --enable-metrics "
        "--served-model-name ${NAME} --port 30000"
    ),
    "environment file, one variable": {
        **unit(f"EnvironmentFile=/etc/s.env\nExecStart={PYTHON} $ARGS"),
        "/etc/s.env": f'# all of it\nARGS="{FLAGS}"\nOTHER=1\n',
    },
    "environment file, unquoted": {
        **unit(f"EnvironmentFile=/etc/s.env\nExecStart={PYTHON} $ARGS"),
        "/etc/s.env": f"ARGS={FLAGS}\n",
    },
    "environment file, lines": {
        **unit(f"EnvironmentFile=/etc/s.env\nExecStart={PYTHON} $ARGS"),
        "/etc/s.env": f'ARGS="{LINES}"\n',
    },
    "shell": unit(f'ExecStart=/bin/bash -c "cd /srv && exec {PYTHON} {FLAGS}"'),
    "shell, lines": unit(f'ExecStart=/bin/bash -lc "exec {PYTHON} \\\n  {LINES}"'),
    "shell, redirected": unit(f'ExecStart=/bin/sh -c "{PYTHON} {FLAGS} >>/var/log/s.log 2>&1"'),
    "wrappers": unit(f"ExecStart=/usr/bin/env A=1 numactl -N 0 taskset -c 0-7 nice -n 5 {PYTHON} {FLAGS}"),
    "nsys": unit(f"ExecStart=/usr/bin/nsys profile -o /tmp/p --trace=cuda,nvtx -f true {PYTHON} {FLAGS}"),
    "uv": unit(
        f"WorkingDirectory=/srv/p\nExecStart=/usr/bin/uv run --with x python -m sglang.launch_server {FLAGS}"
    ),
    "script": script(f"#!/bin/bash\nset -e\nexec {PYTHON} {FLAGS}\n"),
    "script, lines": script(f"#!/usr/bin/env bash\nexec {PYTHON} \\\n  {LINES}\n"),
    "script, tee": script(f"#!/bin/bash\n{PYTHON} \\\n  {LINES} \\\n  2>&1 | tee -a /var/log/s.log\n"),
    "script, array": script(
        "#!/bin/bash\nARGS=(\n  --model-path /srv/m\n  --speculative-ddtree-budget 8   # nodes\n"
        '  --cuda-graph-bs 1 2 4\n  --enable-metrics\n  --served-model-name "kimi k2"\n  --port 30000\n)\n'
        f'exec {PYTHON} "${{ARGS[@]}}"\n'
    ),
    "script, grown": script(
        '#!/bin/bash\nA="--model-path /srv/m"\nA="$A --speculative-ddtree-budget 8"\nA+=" --cuda-graph-bs 1 2 4"\n'
        f"exec {PYTHON} $A --enable-metrics --served-model-name 'kimi k2' --port \"${{PORT:-30000}}\"\n"
    ),
    "script, function": script(
        f'#!/bin/bash\nlaunch() {{\n  {PYTHON} "$@" --port 30000\n}}\n'
        "launch --model-path /srv/m --speculative-ddtree-budget 8 --cuda-graph-bs 1 2 4 --enable-metrics \\\n"
        "  --served-model-name 'kimi k2'\n"
    ),
    "script, arguments from the unit": script(f'#!/bin/sh\nexec {PYTHON} "$@"\n', f"/opt/run.sh {FLAGS}"),
    "script, settings in another": {
        **script(
            f'#!/bin/bash\nsource "$(dirname "$0")/settings"\nexec {PYTHON} --model-path $MODEL '
            "--speculative-ddtree-budget $BUDGET --cuda-graph-bs $BS --enable-metrics "
            '--served-model-name "$NAME" --port 30000\n'
        ),
        "/opt/settings": "MODEL=/srv/m\nBUDGET=8\nBS=\"1 2 4\"\nNAME='kimi k2'\n",
    },
    "config": {
        **unit(f"ExecStart={PYTHON} --config /etc/s.yaml"),
        "/etc/s.yaml": (
            "# settings\nmodel-path: /srv/m\nspeculative-ddtree-budget: 8  # nodes\ncuda-graph-bs: [1, 2, 4]\n"
            "enable-metrics: true\nserved-model-name: kimi k2\nport: 30000\n"
        ),
    },
    "config, block": {
        **unit(f"ExecStart={PYTHON} --config /etc/s.yaml"),
        "/etc/s.yaml": (
            "model-path: /srv/m\nspeculative-ddtree-budget: 8\ncuda-graph-bs:\n  - 1\n  - 2\n  - 4\n"
            'enable-metrics: true\nserved-model-name: "kimi k2"\nport: 30000\n'
        ),
    },
    "docker": unit(
        "ExecStartPre=-/usr/bin/docker rm -f s\nExecStart=/usr/bin/docker run --rm --name s --gpus all -v /a:/b "
        f"-p30000:30000 lmsysorg/sglang:v0.5.11 python3 -m sglang.launch_server {FLAGS}"
    ),
    "docker, shell": unit(
        "ExecStart=/usr/bin/docker run --rm --entrypoint /bin/bash img:1 -c "
        f'"pip install x && exec python3 -m sglang.launch_server {FLAGS}"'
    ),
    "docker, mounted script": {
        **unit("ExecStart=/usr/bin/docker run --rm -v /srv/scripts:/scripts:ro img:1 bash /scripts/run.sh"),
        "/srv/scripts/run.sh": f"exec {PYTHON} \\\n  {LINES}\n",
    },
    "podman": unit(f"ExecStart=/usr/bin/podman run --replace --name=s img:1 sglang serve {FLAGS}"),
    "compose, folded": compose(
        "    command: >\n      python3 -m sglang.launch_server\n      --model-path /srv/m\n"
        "      --speculative-ddtree-budget 8\n      --cuda-graph-bs 1 2 4\n      --enable-metrics\n"
        '      --served-model-name "kimi k2"\n      --port 30000\n',
        "    restart: always\n",
    ),
    "compose, one line": compose(
        f"    command: python3 -m sglang.launch_server {FLAGS}\n", "    ipc: host\n"
    ),
    "compose, quoted": compose(f'    command: "python3 -m sglang.launch_server {FLAGS}"\n'),
    "compose, flow list": compose(f"    command: [{', '.join(ITEMS)}]\n", "    ipc: host\n"),
    "compose, block list": compose(
        "    command:\n" + "".join(f"      - {item}\n" for item in ITEMS), "    ipc: host\n"
    ),
    "compose, shell": compose(
        '    entrypoint: ["bash", "-c"]\n    command:\n      - |\n        ulimit -n 65536\n'
        f"        exec python3 -m sglang.launch_server {LINES.replace(chr(10), chr(10) + '        ')}\n"
    ),
    "compose, variables": {
        **compose(
            "    command: python3 -m sglang.launch_server --model-path ${MODEL:-/srv/m} --speculative-ddtree-budget "
            '${BUDGET} --cuda-graph-bs 1 2 4 --enable-metrics --served-model-name "${NAME}" --port ${PORT-30000}\n'
        ),
        "/srv/c/.env": 'BUDGET=8\nNAME="kimi k2"\n',
    },
    "compose, override": {
        **compose("    command: python3 -m sglang.launch_server --model-path /old\n"),
        "/srv/c/compose.override.yaml": (
            f"services:\n  llm:\n    command: python3 -m sglang.launch_server {FLAGS}\n"
        ),
    },
    "quadlet": {
        "/etc/containers/systemd/s.container": (
            f"[Container]\nImage=img:1\nExec=python3 -m sglang.launch_server \\\n  {LINES}\n\n[Service]\nRestart=always\n"
        )
    },
    "user unit": {
        "/home/u/.config/systemd/user/s.service": f"[Service]\nExecStart=%h/venv/bin/python -m sglang.launch_server {FLAGS}\n"
    },
}
