# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What processes have used, by their pids. Source it.
#
#   rss_of PID...          VmRSS of all of them together, MB
#   peak_of PID            the highest it ever was (VmHWM), MB
#   cpu_of PID             CPU so far, ms
#   tree_of PID            it and all below it
#   tree_cpu PID           CPU of all of them so far, those that have ended included, ms
#   memory_by WHICH PID... "6.1 MB (supervisor 0.5, agent 5.6)"; WHICH is Pss or Rss
#   own_libraries PROGRAM DIR   copy those that it needs there: for LD_LIBRARY_PATH

rss_of() {
	local pid

	for pid; do
		cat "/proc/$pid/status"
	done | awk '/^VmRSS/ { sum += $2 } END { printf "%.1f", sum / 1024 }'
}

peak_of() {
	awk '/^VmHWM/ { printf "%.1f", $2 / 1024 }' "/proc/$1/status"
}

cpu_of() {
	local stat fields

	stat=$(<"/proc/$1/stat")
	read -r -a fields <<<"${stat##*) }"
	echo $(((fields[11] + fields[12]) * 1000 / $(getconf CLK_TCK)))
}

tree_of() {
	local child

	echo "$1"
	for child in $(pgrep -P "$1"); do
		tree_of "$child"
	done
}

# Fields of proc(5) behind the name: a parent has waited for those that have ended (14, 15).
tree_cpu() {
	local pid

	for pid in $(tree_of "$1"); do
		sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null || true
	done | awk -v hz="$(getconf CLK_TCK)" '{ sum += $12 + $13 + $14 + $15 } END { print sum * 1000 / hz }'
}

memory_by() {
	local which=$1 pid

	shift
	for pid; do
		awk -v which="$which:" -v name="$(sed 's/^ow-//' "/proc/$pid/comm")" '$1 == which { print name, $2 }' \
			"/proc/$pid/smaps_rollup" || true
	done 2>/dev/null | awk '{ sum += $2; text = text (NR > 1 ? ", " : "") sprintf("%s %.1f", $1, $2 / 1024) }
		END { printf "%.1f MB (%s)", sum / 1024, text }'
}

# Those of the machine are also in other programs' memory; an image has its own.
own_libraries() {
	mkdir -p "$2"
	ldd "$1" | sed -nE 's/.* => (\/[^ ]+) .*/\1/p' | xargs -I{} cp -L {} "$2"
}
