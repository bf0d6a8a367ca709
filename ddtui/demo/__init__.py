"""The embedded demo host: an SSH server with a small Linux host of its own behind it, all of it simulated.

It runs in a process of its own (`python -m ddtui.demo --state DIR`) and is reached over loopback through
exactly the code that reaches a real host. `launch.start()` starts it and gives the profile that leads to it.

How the host runs the SGLang stand-in (`standin/`), that is, what the two agree on:

- command: what the unit's ExecStart says, with this machine's Python in place of `/usr/bin/python3`
  (`python -S -m sglang.launch_server …`); flags keep the host's own paths (`/opt/models/…`);
- `PYTHONPATH` leads to `standin/`;
- `SGLANG_STANDIN_ROOT`: the folder that holds the host's files; every absolute path that a flag names is read
  below it (`$SGLANG_STANDIN_ROOT/opt/models/drafter/config.json`) and printed without it;
- `SGLANG_STANDIN_UDS`: listen on this Unix socket in place of `--host` and `--port`, which the log line
  `Uvicorn running on http://HOST:PORT` still names: from that line on the host's port counts as open;
- `SGLANG_STANDIN_LOAD_SECONDS`: how long loading takes in all; 0: at once (the start at boot, whose lines the
  host backdates); absent: the stand-in's own few seconds;
- every other `SGLANG_STANDIN_…` of the demo's own environment is handed on, after the unit's own
  (`SGLANG_STANDIN_FAIL=oom ddtui demo`);
- stdin is a pipe that ends when the host ends: the stand-in must then end too;
- stderr and stdout are read as they come, tqdm's `\\r` pieces included (the journal gets whole lines only).
"""
