# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Packages of Debian, as sources or as they are, for scripts that build from them or unpack them. Source it after
# hack/steps.sh; $work is the caller's folder. Package lists are of our own: the machine's stay as they are.

# source_package NAME[=VERSION] SUITE...: the files of a source package, into $work/dsc. Fails, and says why, if none of
# the suites (bookworm, bookworm-security, …) has it.
source_package() {
	local apt

	read_lists deb-src "${@:2}" || return
	mkdir -p "$work/dsc" && cd "$work/dsc" || return
	succeeds "${apt[@]}" source --download-only "$1"
}

# binary_package NAME SUITE...: the package itself, into $work/deb.
binary_package() {
	local apt

	read_lists deb "${@:2}" || return
	mkdir -p "$work/deb" && cd "$work/deb" || return
	succeeds "${apt[@]}" download "$1"
}

# read_lists deb|deb-src SUITE...: fetch the package lists of these suites; sets `apt` to the command that knows them.
read_lists() {
	local type=$1 state=$work/apt-$1 lines
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg

	shift
	apt=(apt-get -q -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state/cache" -o APT::Sandbox::User=)
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
	lines=$(source_lines "$type" "$keyring" "$@")
	if [[ -z $lines ]]; then
		echo "$script: this machine's package sources do not name main of: $*" >&2
		return 1
	fi
	printf '%s\n' "$lines" >"$state/sources.list"
	succeeds "${apt[@]}" update
}

# The suites' lines for a sources.list: from where this machine gets its packages, where it names no sources.
source_lines() {
	local type=$1 keyring=$2 created_by lines

	shift 2
	for created_by in Sources Packages; do
		[[ $type == deb-src || $created_by == Packages ]] || continue
		# shellcheck disable=SC2016 # apt expands these, not the shell
		lines=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' "Created-By: $created_by" |
			awk -v type="$type" -v keyring="$keyring" -v suites=" $* " 'index(suites, " " $1 " ") && $2 == "main" {
				print type " [signed-by=" keyring "] " $3 " " $1 " main" }' |
			sort -u)
		[[ -z $lines ]] || break
	done
	printf '%s' "$lines"
}

# unpack_source FILE.dsc FOLDER; apt has verified the files against the signed package list.
unpack_source() {
	say "unpacking ${1##*/}"
	quietly dpkg-source --no-check -x "$1" "$2"
}
