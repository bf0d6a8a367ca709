#!/bin/bash
# Stands in for docker where docker cannot run. A "container" is a transient systemd service: a cgroup and a
# mount namespace of its own, with /srv/image as what only the image holds.
if [ "$(id -u)" != 0 ]; then
    echo "permission denied while trying to connect to the Docker daemon socket" >&2
    exit 1
fi
pid() { systemctl show -p MainPID --value "standin-$1.service"; }
case $1 in
run)
    shift
    how=()
    while [[ $1 == -* ]]; do
        case $1 in
        --name) name=$2; shift 2 ;;
        -v) how+=(-p "BindPaths=$2"); shift 2 ;;
        -e) how+=(-E "$2"); shift 2 ;;
        -p | --gpus) shift 2 ;;
        *) shift ;;
        esac
    done
    shift
    exec systemd-run --quiet --wait --pipe --collect --unit "standin-$name" -p BindPaths=/srv/image:/image \
        -E PYTHONPATH=/image/sglang "${how[@]}" "$@"
    ;;
top)
    [ "$(pid "$2")" != 0 ] || { echo "Error response from daemon: No such container: $2" >&2; exit 1; }
    echo PID
    cat "/sys/fs/cgroup/system.slice/standin-$2.service/cgroup.procs"
    ;;
exec)
    shift 2
    main=$(pid "$1")
    shift
    mapfile -d '' -t environ <"/proc/$main/environ"
    exec nsenter -t "$main" -m -- env -i "${environ[@]}" "$@"
    ;;
stop | rm) systemctl stop "standin-${*: -1}.service" ;;
esac
