# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Start and end programs that outlive the script which started them. Source this file.
#
# A program is known by a file: "pid start-time". A pid alone may by now be someone else's process.

# process_start FILE LOG COMMAND...: own session, no input, output to the end of LOG.
process_start() {
	local file=$1 log=$2 pid

	shift 2
	setsid "$@" </dev/null >>"$log" 2>&1 &
	pid=$!
	disown "$pid"
	echo "$pid $(process_start_time "$pid")" >"$file"
}

# When the process started, proc(5); nothing when there is none. The name in the second field may hold anything.
process_start_time() {
	local stat fields

	{ stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 0
	read -r -a fields <<<"${stat##*) }"
	[[ ${fields[0]} == [ZX] ]] || echo "${fields[19]}"
}

# Print the pid of the program that FILE names, if it runs.
process_pid() {
	local pid started

	{ read -r pid started <"$1"; } 2>/dev/null || return 1
	[[ -n $started && $(process_start_time "$pid") == "$started" ]] || return 1
	echo "$pid"
}

# process_end FILE: SIGTERM, and SIGKILL after 8 s. Fine when it does not run.
process_end() {
	local file=$1 pid i

	if pid=$(process_pid "$file"); then
		kill "$pid" 2>/dev/null || true
		for ((i = 0; i < 400; i++)); do
			process_pid "$file" >/dev/null || break
			((i != 320)) || kill -KILL "$pid" 2>/dev/null || true
			sleep 0.025
		done
	fi
	rm -f "$file"
}
