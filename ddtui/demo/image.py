"""What is on the disk of a fresh demo host."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

from ddtui.demo.accounts import GROUPS, LOGINS, USERS
from ddtui.demo.commands.path import PROGRAMS
from ddtui.demo.commands.system import group_line, passwd_line
from ddtui.demo.filesystem import Filesystem

UNIT = "sglang-k26-ddtree.service"
TARGET = "/opt/models/Kimi-K2.6"
DRAFTER = "/opt/models/Kimi-K2.6-DFlash"
STANDIN = Path(__file__).resolve().parent / "standin"
MODELS = STANDIN / "models"
AGE = 9 * 86400.0  # of the files
SHARDS, SHARD_BYTES = 64, 9_293_410_304  # of the target's weights, which only look that big

UNIT_TEXT = f"""\
[Unit]
Description=SGLang Kimi-K2.6 with DDTree speculative decoding (simulated)
After=network-online.target nvidia-persistenced.service
Wants=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=20

[Service]
Type=simple
User=sglang
WorkingDirectory=/opt/sglang
Environment=PYTHONUNBUFFERED=1 PYTHONPATH=/opt/sglang
EnvironmentFile=-/etc/default/sglang
ExecStart=/usr/bin/python3 -m sglang.launch_server \\
    --model-path {TARGET} \\
    --trust-remote-code \\
    --host 127.0.0.1 \\
    --port 30000 \\
    --tp-size 8 \\
    --mem-fraction-static 0.88 \\
    --context-length 262144 \\
    --max-running-requests 48 \\
    --attention-backend triton \\
    --speculative-algorithm DDTREE \\
    --speculative-draft-model-path {DRAFTER} \\
    --speculative-ddtree-budget 8 \\
    --speculative-ddtree-topk-cap 4 \\
    --enable-metrics \\
    --served-model-name "kimi k2.6"
Restart=on-failure
RestartSec=2
TimeoutStopSec=10
KillSignal=SIGTERM

[Install]
WantedBy=multi-user.target
"""

DROP_IN_TEXT = """\
# site policy: memory locking and open files for RDMA
[Service]
LimitMEMLOCK=infinity
LimitNOFILE=1048576
"""

DEFAULTS_TEXT = """\
# read by sglang-k26-ddtree.service at every start
HF_HUB_OFFLINE=1
"""

OS_RELEASE = """\
PRETTY_NAME="Demo Linux (simulated)"
NAME="Demo Linux"
VERSION_ID="12"
ID=debian
"""

MOTD = "This is ddtui's demo host. Everything on it is simulated: the machine, its GPUs and the server.\n"


def files() -> dict[str, str]:
    """The text files, by path."""
    return {
        f"/etc/systemd/system/{UNIT}": UNIT_TEXT,
        f"/etc/systemd/system/{UNIT}.d/10-limits.conf": DROP_IN_TEXT,
        "/etc/default/sglang": DEFAULTS_TEXT,
        "/etc/os-release": OS_RELEASE,
        "/etc/hostname": "demo\n",
        "/etc/hosts": "127.0.0.1 localhost\n127.0.1.1 demo\n",
        "/etc/motd": MOTD,
        "/etc/passwd": "".join(passwd_line(user) + "\n" for user in USERS.values()),
        "/etc/group": "".join(group_line(group) + "\n" for group in GROUPS),
    }


FOLDERS = (
    "/etc/systemd/system/multi-user.target.wants",
    "/opt/models",
    "/root",
    "/run/lock",
    "/run/systemd/system",
    "/tmp",
    "/usr/bin",
    "/usr/lib/systemd/system",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/local/lib/systemd/system",
    "/var/lib",
    "/var/log/journal",
    "/var/tmp",
)


def install(fs: Filesystem, machine_id: str) -> None:
    """Write a fresh host's files below `fs.root`."""
    root = fs.root
    root.mkdir(parents=True)
    for folder in FOLDERS:
        (root / folder[1:]).mkdir(parents=True, exist_ok=True)
    for path, text in files().items():
        target = root / path[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (root / "etc/machine-id").write_text(machine_id + "\n")
    wants = root / "etc/systemd/system/multi-user.target.wants" / UNIT
    wants.symlink_to(f"/etc/systemd/system/{UNIT}")
    (root / "bin").symlink_to("usr/bin")
    (root / "sbin").symlink_to("usr/sbin")
    (root / "lib").symlink_to("usr/lib")
    for name in PROGRAMS:
        if name != "python3":
            (root / "usr/bin" / name).touch()
            fs.own(f"/usr/bin/{name}", 0, 0, 0o755)
    (root / "usr/bin/python3.11").touch()
    (root / "usr/bin/python3").symlink_to("python3.11")
    fs.own("/usr/bin/python3.11", 0, 0, 0o755)
    for folder in ("/tmp", "/var/tmp"):
        fs.own(folder, 0, 0, 0o1777)
    fs.own("/root", 0, 0, 0o700)
    for name in LOGINS:
        user = USERS[name]
        home = root / user.home[1:]
        home.mkdir(parents=True, exist_ok=True)
        fs.own(user.home, user.uid, user.gid, 0o700)
    _models(fs)
    old = time.time() - AGE
    for folder, names, file_names in os.walk(root):
        for name in (*names, *file_names):
            os.utime(Path(folder, name), (old, old), follow_symlinks=False)
    fs.save()


def _models(fs: Filesystem) -> None:
    shutil.copytree(MODELS, fs.root / "opt/models", dirs_exist_ok=True)
    target = fs.root / TARGET[1:]
    weights: dict[str, str] = {}
    for number in range(1, SHARDS + 1):
        name = f"model-{number:05d}-of-{SHARDS:06d}.safetensors"
        if not any(target.glob("*.safetensors")) or weights:
            (target / name).touch()
            fs.disguise(f"{TARGET}/{name}", SHARD_BYTES)
            weights[name] = name
    index = target / "model.safetensors.index.json"
    if weights and not index.exists():
        index.write_text(
            json.dumps({"metadata": {"total_size": SHARDS * SHARD_BYTES}, "weight_map": weights})
        )
    drafter = fs.root / DRAFTER[1:] / "model.safetensors"
    if not drafter.exists():
        drafter.touch()
        fs.disguise(f"{DRAFTER}/model.safetensors", 6_979_321_856)
