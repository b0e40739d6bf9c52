#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/deps --check names what is missing, and the command that installs it, in one line; `make` asks before it compiles.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
. tests/lib.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# A system on which all packages are installed but those in $MISSING.
mkdir "$tmp/bin"
cat >"$tmp/bin/dpkg-query" <<'STUB'
#!/bin/bash
shift 3
for package; do
	[[ " $MISSING " == *" $package "* ]] || printf 'ii  %s\n' "$package"
done
STUB
chmod +x "$tmp/bin/dpkg-query"

check() {
	MISSING=$1 PATH=$tmp/bin:$PATH hack/deps --check "${@:2}"
}

check_fails() {
	! check "$@" 2>&1
}

t_eq "nothing is said where all is installed" "" "$(check "" programs 2>&1)"
t_eq "one line names packages and command" \
	"hack/deps: not installed: gcc libuv1-dev; as root run: hack/deps programs" "$(check_fails "libuv1-dev gcc" programs)"
t_eq "what building needs is part of what checking needs" \
	"hack/deps: not installed: gcc shellcheck; as root run: hack/deps build" "$(check_fails "gcc shellcheck" build)"
t_ok "tools for checks are not needed to build" check "valgrind clang libcmocka-dev" programs
t_eq "make says it before it compiles" \
	"hack/deps: not installed: libyaml-dev; as root run: hack/deps programs" \
	"$(MISSING=libyaml-dev PATH=$tmp/bin:$PATH MAKEFLAGS='' make -s BUILD="$tmp/build" 2>&1 | head -n 1)"
t_fails "and builds nothing then" test -e "$tmp/build/opt"
t_done
