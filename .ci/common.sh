# What `.ci/run` and `.ci/nightly` share; each sets TOTAL_SECONDS, sources this, and calls `begin`, stages, `finish`.
# The tree is copied to a temporary directory, where each stage runs, bounded, also when one before it failed.
# shellcheck shell=bash
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/lithos-ci.XXXXXX") || exit 1
# The files of tests, in memory: pytest does not remove them when it is stopped.
memory=$(mktemp -d /dev/shm/ci-tests.XXXXXX 2>/dev/null) && export TESTS_MEMORY=$memory
trap 'rm -rf "$work" "$memory"' EXIT
failed=()
summaries=()

say() { printf '\n=== %s\n' "$*"; }

# stage NAME SECONDS COMMAND...: runs the command in the copy, bounded by its own and by the total time.
stage() {
    local name=$1 limit=$2 left=$((TOTAL_SECONDS - SECONDS)) begun=$SECONDS code
    shift 2
    ((limit > left)) && limit=$((left > 1 ? left : 1))
    say "$name: $*"
    timeout --kill-after=10 "$limit" "$@" </dev/null 2>&1 | tee "$work/log"
    code=${PIPESTATUS[0]}
    ((code == 124 || code == 137)) && echo "stopped after $limit s"
    if ((code)); then failed+=("$name (exit $code)"); fi
    summaries+=("$name, $((SECONDS - begun)) s: $(grep -v '^$' "$work/log" | tail -n 1)")
    return "$code"
}

copy_tree() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard |
            while IFS= read -r -d '' file; do # a tracked file may have been deleted
                if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi
            done |
            tar --create --null --files-from=- | tar --extract --directory="$1"
    else
        tar --create --exclude=./.venv . | tar --extract --directory="$1"
    fi
}

# Debian's chromium and chromedriver, for the tests of the console.
has_browser() { command -v chromium >/dev/null && command -v chromedriver >/dev/null; }
install_browser() {
    has_browser && return
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        say "browser: apt-get install chromium chromium-driver"
        timeout 60 apt-get update -qq </dev/null &&
            DEBIAN_FRONTEND=noninteractive timeout 180 apt-get install -y -qq --no-install-recommends \
                chromium chromium-driver fonts-dejavu-core </dev/null >"$work/apt" 2>&1
        tail -n 1 "$work/apt" 2>/dev/null
    fi
    has_browser
}

# Sets `command` to the one line that README.md gives to people: the first code block after `<!-- test -->`.
# It must look as expected, so that a slip in README.md cannot make the gate run nothing.
read_test_command() {
    command=$(awk '/^<!-- test -->$/ {marked=1} marked && /^```/ {if (inside) exit; inside=1; next} inside' README.md)
    if [[ $command != 'python3 -m venv .venv && '*' && .venv/bin/python -m pytest' || $command == *$'\n'* ]]; then
        say "FAILED: README.md has no code block after '<!-- test -->' with one line" \
            "'python3 -m venv .venv && ... && .venv/bin/python -m pytest'; found: '$command'"
        exit 1
    fi
}

# A clean copy of the tree, in which everything below runs; `command` is the one of README.md.
begin() {
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        say "FAILED: python3 must be 3.11 or newer, it is $(python3 --version 2>&1)"
        exit 1
    }
    read_test_command
    if install_browser; then
        export LITHOS_BROWSER_REQUIRED=1
    else
        say "browser: NOT RUN: there is no chromium with chromedriver, and it could not be installed"
        summaries+=("browser tests: NOT RUN, there is no chromium with chromedriver")
    fi
    # Real data beside the repository, where it is.
    [[ -d ../shared ]] && LITHOS_SHARED=$(cd ../shared && pwd) && export LITHOS_SHARED
    mkdir "$work/tree" && copy_tree "$work/tree" && cd "$work/tree" || {
        say "FAILED: the tree could not be copied to $work"
        exit 1
    }
    # Without bytecode each program that a test starts would be compiled anew.
    unset VIRTUAL_ENV PYTHONPATH PYTEST_ADDOPTS PYTHONDONTWRITEBYTECODE
}

finish() {
    say "summary"
    printf '%s\n' "${summaries[@]}"
    if ((${#failed[@]})); then
        printf 'FAILED: %s\n' "${failed[@]}"
        exit 1
    fi
    echo "all stages passed in $SECONDS s"
}
