#!/usr/bin/env bash
# Builds and starts the image of docker/Dockerfile without a Docker engine, in a clean root directory of this machine:
#   sudo bash docker/rehearse.sh
# It reads the steps from the Dockerfile, so no second copy of them exists. debootstrap makes the base image. Each RUN
# step runs in a chroot. The last stage starts as its own user, offline, with a read-only root, without capabilities.
# It needs root, Linux, Python 3.11, debootstrap and access to Debian's mirror and the Python package index. The base
# image is kept for a week in $LITHOS_REHEARSAL_CACHE (default: ~/.cache/lithos-rehearsal).
# Exit codes: 0 passed, 1 failed, 77 something that it needs is missing (nothing was tried).
set -euo pipefail
cd "$(dirname "$0")/.."
missing() { echo "The rehearsal cannot run here: $1. Nothing was tried; $2."; exit 77; }
[[ $(uname) == Linux ]] || missing "this is $(uname)" "use Linux"
((EUID == 0)) || missing "it needs root for chroot" "run it with sudo"
for each in debootstrap unshare chroot; do
    command -v "$each" >/dev/null || missing "$each is not installed" "install it: apt-get install debootstrap util-linux"
done
unshare --mount --net --pid --fork true 2>/dev/null || missing "namespaces are not allowed" "use a machine that allows unshare"
exec python3 docker/rehearsal.py
