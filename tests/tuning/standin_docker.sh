#!/bin/bash
# Stands in for docker, and for podman where it is called so, where neither can run. A "container" is a transient
# systemd service: a cgroup and a mount namespace of its own, with /srv/image as what only the image holds.
program=${0##*/}
gone() { # of a container that is not there, or not this user's
    if [ "$program" = podman ]; then
        echo "Error: no container with name or ID \"$1\" found: no such container" >&2
        exit 125
    fi
    echo "Error response from daemon: No such container: $1" >&2
    exit 1
}
if [ "$(id -u)" != 0 ]; then
    [ "$program" = podman ] && gone "${2/-i/$3}" # podman shows each user its own containers
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
        --name=*) name=${1#*=}; shift ;;
        -v) how+=(-p "BindPaths=$2"); shift 2 ;;
        -e | --env) how+=(-E "$2"); shift 2 ;;
        -p | --gpus) shift 2 ;;
        *) shift ;;
        esac
    done
    shift
    exec systemd-run --quiet --wait --pipe --collect --unit "standin-$name" -p BindPaths=/srv/image:/image \
        -E PYTHONPATH=/image/sglang "${how[@]}" "$@"
    ;;
top)
    [ "$(pid "$2")" != 0 ] || gone "$2"
    if [ "$program" = podman ]; then [ "$3" = hpid ] && echo HPID; else [ "$3 $4" = "-o pid" ] && echo PID; fi
    cat "/sys/fs/cgroup/system.slice/standin-$2.service/cgroup.procs"
    ;;
exec)
    shift 2
    main=$(pid "$1")
    [ "$main" != 0 ] || gone "$1"
    shift
    mapfile -d '' -t environ <"/proc/$main/environ"
    exec nsenter -t "$main" -m -- env -i "${environ[@]}" "$@"
    ;;
stop | rm) systemctl stop "standin-${*: -1}.service" ;;
esac
