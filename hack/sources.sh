# shellcheck shell=bash
# Debian's source packages, for scripts that build from them. Source it after hack/steps.sh; $work is the caller's folder.
# Package lists are of our own: the machine's stay as they are.

# source_package NAME[=VERSION] SUITE...: the files of a source package, into $work/dsc. Fails, and says why, if none of
# the suites (bookworm, bookworm-security, …) has it.
source_package() {
	local package=$1 lists=$work/apt/sources.list lines
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	local apt=(apt-get -q -o "Dir::Etc::sourcelist=$lists" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::Lists=$work/apt/lists" -o "Dir::Cache=$work/apt/cache" -o APT::Sandbox::User=)

	shift
	mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/dsc"
	lines=$(source_lines "$keyring" "$@")
	if [[ -z $lines ]]; then
		echo "$script: this machine's package sources do not name main of: $*" >&2
		return 1
	fi
	printf '%s\n' "$lines" >"$lists"
	succeeds "${apt[@]}" update || return
	cd "$work/dsc" || return
	succeeds "${apt[@]}" source --download-only "$package"
}

# The suites' lines for a sources.list: from where this machine gets its packages, where it names no sources.
source_lines() {
	local keyring=$1 created_by lines

	shift
	for created_by in Sources Packages; do
		# shellcheck disable=SC2016 # apt expands these, not the shell
		lines=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' "Created-By: $created_by" |
			awk -v keyring="$keyring" -v suites=" $* " 'index(suites, " " $1 " ") && $2 == "main" {
				print "deb-src [signed-by=" keyring "] " $3 " " $1 " main" }' |
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
