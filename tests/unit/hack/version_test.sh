#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The version that hack/version prints: a semantic version for every state of a checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
. tests/lib.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset SOURCE_DATE_EPOCH
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.com GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.com
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
mkdir "$tmp/hack"
cp hack/version "$tmp/hack"
echo 0.3.0 >"$tmp/VERSION"

version() {
	"$tmp/hack/version"
}

in_repository() {
	git -C "$tmp" "$@"
}

commit() {
	in_repository rev-parse --short=12 HEAD
}

# https://semver.org: no leading zeros in numbers, identifiers of letters, digits and hyphens.
is_semantic() {
	[[ $(version) =~ ^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$ ]]
}

t_eq "an unpacked archive has the version of the file" 0.3.0 "$(version)"
in_repository init -q
in_repository add .
in_repository commit -q -m one
t_eq "without a tag it has the commit" "0.3.0-dev+g$(commit)" "$(version)"
t_ok "which is a semantic version" is_semantic
t_eq "its time is the commit's" 1700000000 "$("$tmp/hack/version" --epoch)"
t_eq "or the one that is asked for" 1600000000 "$(SOURCE_DATE_EPOCH=1600000000 "$tmp/hack/version" --epoch)"
touch "$tmp/VERSION"
t_eq "a file that was only touched is no edit" "0.3.0-dev+g$(commit)" "$(version)"
touch "$tmp/new"
t_eq "a file that Git does not track is none either" "0.3.0-dev+g$(commit)" "$(version)"
echo '# edited' >>"$tmp/hack/version"
t_eq "an edit is" "0.3.0-dev+g$(commit).dirty" "$(version)"
t_ok "which is a semantic version, too" is_semantic
in_repository commit -q -a -m two
in_repository tag not-a-version
t_eq "tags of other things do not count" "0.3.0-dev+g$(commit)" "$(version)"
in_repository tag v0.3.0
t_eq "at its tag it is the release" 0.3.0 "$(version)"
echo '# edited' >>"$tmp/hack/version"
t_eq "an edited release is none" 0.3.0+dirty "$(version)"
in_repository commit -q -a -m three
echo 0.4.0 >"$tmp/VERSION"
in_repository commit -q -a -m four
t_eq "after it, commits to the next release are counted" "0.4.0-dev.2+g$(commit)" "$(version)"
t_ok "which is a semantic version as well" is_semantic
mkdir "$tmp/build" && cp -r "$tmp/hack" "$tmp/VERSION" "$tmp/build"
t_eq "an archive that was unpacked inside another repository is not of that one" 0.4.0 "$("$tmp/build/hack/version")"
t_eq "the chart in the tree is of the release that is worked on" "$(<VERSION)" "$(sed -n 's/^version: //p' manifests/chart/Chart.yaml)"
t_fails "other arguments are refused" "$tmp/hack/version" --tag
t_done
