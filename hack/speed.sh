# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# How slow is this machine now? Deadlines are written for two cores with nothing else to do; what waits for one multiplies
# it with the answer, so that nothing fails because other programs are at work, or processors are old. Source it.
#
#   slowness_measure           set and export $ORBWEAVER_SLOWNESS: 1 on such a machine, 3 on one that takes three times as long.
#                              Takes a second there. It never falls: who has waited on a busy machine goes on as on one.
#   slowly SECONDS             print these seconds, multiplied
#   time_is_left BEGAN SECONDS
#                              is it less than so many seconds, multiplied, since $SECONDS was BEGAN? When time is up it
#                              measures once more: the machine may have become busy since.

# Above this something else is wrong.
slowness_max=30

# A fixed piece of work, once for each of two virtual nodes: 0.9 s on the reference (AMD EPYC, two cores, quiet).
slowness_measure() {
	local began now i copies=()

	began=${EPOCHREALTIME//[.,]/}
	for _ in 1 2; do
		(for ((i = 0; i < 600000; i++)); do :; done) &
		copies+=($!)
	done
	wait "${copies[@]}"
	now=$(((${EPOCHREALTIME//[.,]/} - began) / 1000000 + 1))
	((now <= slowness_max)) || now=$slowness_max
	((now <= ${ORBWEAVER_SLOWNESS:-1})) || ORBWEAVER_SLOWNESS=$now
	export ORBWEAVER_SLOWNESS=${ORBWEAVER_SLOWNESS:-1}
}

slowly() {
	echo $(($1 * ${ORBWEAVER_SLOWNESS:-1}))
}

time_is_left() {
	local until=$(($1 + $2 * ${ORBWEAVER_SLOWNESS:-1}))

	((SECONDS >= until)) || return 0
	slowness_measure
	((SECONDS < $1 + $2 * ORBWEAVER_SLOWNESS))
}
