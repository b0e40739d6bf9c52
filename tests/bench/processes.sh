# shellcheck shell=bash
# What processes have used, by their pids. Source it.
#
#   rss_of PID...   VmRSS of all of them together, MB
#   peak_of PID     the highest it ever was (VmHWM), MB
#   cpu_of PID      CPU so far, ms

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
