#!/usr/bin/python3
"""Stands in for podman's systemd generator: a service for each .container file, as far as the tests need it."""

import pathlib
import shlex
import sys

for file in pathlib.Path("/etc/containers/systemd").glob("*.container"):
    text = file.read_text().replace("\\\n", " ")
    section, found = "", {}
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault((section, key), []).append(value.strip())
    name = found.get(("Container", "ContainerName"), [f"systemd-{file.stem}"])[0]
    words = ["/usr/bin/podman", "run", f"--name={name}", "--replace", "--rm"]
    words += [word for volume in found.get(("Container", "Volume"), []) for word in ("-v", volume)]
    words += [word for one in found.get(("Container", "Environment"), []) for word in ("--env", one)]
    start = f"{shlex.join(words)} {found['Container', 'Image'][0]} {found['Container', 'Exec'][0]}"
    unit = f"[Unit]\nSourcePath={file}\n[Service]\nExecStart={start}\nExecStop=/usr/bin/podman stop {name}\n"
    pathlib.Path(sys.argv[1], f"{file.stem}.service").write_text(unit)
