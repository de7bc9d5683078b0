#!/usr/bin/env bash
# Runs the install and start steps of docker/Dockerfile in an empty directory and virtual environment on this
# machine, where no Docker engine is needed: COPY, RUN (but the account), ENTRYPOINT and CMD, HEALTHCHECK and the
# stop signal are read from the Dockerfile, so that what is rehearsed is what is built. Two things differ: the
# server listens on 127.0.0.1 and on a free port, and the paths are below a temporary directory.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(mktemp -d "${TMPDIR:-/tmp}/lithos-rehearsal.XXXXXX")
server=
cleanup() {
    if [[ -n $server ]]; then kill -KILL "$server" 2>/dev/null || true; fi
    rm -rf "$root"
}
trap cleanup EXIT
say() { printf -- '--- %s\n' "$*"; }

# steps KIND: the instructions of a kind, one a line, continuation lines joined.
steps() {
    awk -v kind="$1" '/^[[:space:]]*#/ {next} {line = line $0} /\\$/ {sub(/\\$/, "", line); next} {print line; line = ""}' \
        docker/Dockerfile | sed -nE "s/^$1[[:space:]]+//p"
}
json() { python3 -c 'import json, sys; print("\n".join(json.loads(sys.argv[1])))' "$1"; }

say "python $(python3 --version | cut -d' ' -f2) in an empty environment below $root"
python3 -m venv "$root/python"
export PATH="$root/python/bin:$PATH" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
unset VIRTUAL_ENV PYTHONPATH
work="$root$(steps WORKDIR)"
mkdir -p "$work"

steps COPY | while read -r -a words; do
    target=${words[-1]}
    say "COPY ${words[*]}"
    for source in "${words[@]:0:${#words[@]}-1}"; do
        if [[ -d $source ]]; then
            mkdir -p "$work/$target" && cp -R "$source/." "$work/$target/"
        else
            cp "$source" "$work/$target"
        fi
    done
done
find "$work" -name __pycache__ -prune -exec rm -rf {} +

began=$SECONDS
while IFS= read -r step; do
    if [[ $step == useradd* ]]; then
        say "skipped, image only: $step"
        continue
    fi
    say "RUN $step"
    (cd "$work" && bash -ec "$step" >"$root/log" 2>&1) || { cat "$root/log"; exit 1; }
done < <(steps RUN)
say "installed in $((SECONDS - began)) s, $(du -sm "$work/.venv" | cut -f1) MB"

export PATH="$work/.venv/bin:$PATH" LITHOS_DATA_DIR="$root/data" LITHOS_LOG_FORMAT=text
LITHOS_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export LITHOS_PORT
mapfile -t command < <(json "$(steps ENTRYPOINT)"; json "$(steps CMD)")
command=("${command[@]/#0.0.0.0/127.0.0.1}")
healthcheck=$(steps HEALTHCHECK)
mapfile -t check < <(json "${healthcheck#*CMD }")
mkdir "$LITHOS_DATA_DIR"
touch "$root/marker"

say "${command[*]}"
(cd / && exec "${command[@]}") >"$root/out" 2>"$root/log" &
server=$!
for _ in $(seq 300); do
    if "${check[@]}" 2>/dev/null; then break; fi
    kill -0 "$server" 2>/dev/null || { cat "$root/log"; say "FAILED: the server ended"; exit 1; }
    sleep 0.1
done
"${check[@]}" || { cat "$root/log"; say "FAILED: not healthy after 30 s"; exit 1; }
say "healthy: $(tail -n 1 "$root/out")"

python3 - "$LITHOS_PORT" <<'PYTHON'
import json, sys, urllib.request

def call(name, **arguments):
    """One tool over /mcp, as an agent calls it."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    request = urllib.request.Request(
        f"http://localhost:{sys.argv[1]}/mcp",
        json.dumps(message).encode(),
        {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["result"]["structuredContent"]

note = call("lithos_write", title="Rehearsal", content="The container would start.", agent="rehearsal")
assert note["status"] == "created", note
found = call("lithos_search", query="would the container start?", mode="semantic", explain=True)["results"]
assert [row["id"] for row in found] == [note["id"]], found
print(f"--- wrote {note['path']} and found it by meaning, similarity {found[0]['similarity']:.2f}")
PYTHON

kill -TERM "$server"
code=0
wait "$server" || code=$?
server=
if ((code)); then cat "$root/log"; say "FAILED: the stop ended with $code"; exit 1; fi
say "stopped in order, exit 0"
# The root file system of the container is read-only: nothing but the data may have been written.
strays=$(find "$root" -newer "$root/marker" -type f -not -path "$root/data/*" -not -path "$root/log" -not -path "$root/out" -not -path "$root/marker")
if [[ -n $strays ]]; then say "FAILED: written outside of the data directory:" "$strays"; exit 1; fi
[[ -f $root/data/knowledge/rehearsal.md ]] || { say "FAILED: the note is not in the volume"; exit 1; }
say "the note is in the volume, nothing was written elsewhere"
echo "rehearsal passed"
