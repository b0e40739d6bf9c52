#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/layers and hack/calls on a copy of the tree: they accept the copy, and refuse each mistake planted in it, with the way there.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/lib.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fresh() {
	rm -rf "$work/tree"
	mkdir "$work/tree"
	tar c --exclude=build Makefile hack lib operator nodeagent reconcilers VERSION tests/tests.mk tests/check.mk | tar x -C "$work/tree"
}

layers() {
	make -s -C "$work/tree" includes calls 2>&1
}

# plant FILE LINE: LINE above the includes of FILE.
plant() {
	fresh
	sed -i "0,/^#include/s|^#include|$2\n&|" "$work/tree/$1"
}

# refused NAME TEXT: layers fails and says so.
refused() {
	local output

	if output=$(layers); then
		output="not refused: $output"
	fi
	t_ok "$1" grep -qF -- "$2" <<<"$output"
}

fresh
t_ok "the tree as it is" layers

plant lib/base/err.h '#include "lib/base/flags.h"'
refused "a circle of includes" "a circle of includes: "

plant reconcilers/core/plan.c '#include <unistd.h>'
refused "a door in a pure file" "reconcilers/core/plan.c includes <unistd.h>, a door"

plant lib/base/err.h '#include <unistd.h>'
refused "a door that a header of lib/base opens for a pure file" \
	"-> lib/base/err.h includes <unistd.h>, a door"

plant nodeagent/model/step.h '#include "lib/base/fs.h"'
refused "a door of lib/base that a pure header opens for a neighbour" \
	"-> nodeagent/model/step.h includes lib/base/fs.h, a door"

plant nodeagent/host_plan/planner.h '#include "nodeagent/host/host.h"'
refused "a folder that is not for this one" \
	"nodeagent/host_plan/planner.h includes nodeagent/host/host.h, but nodeagent/host_plan may use only"

plant operator/manager.c '#include <curl/curl.h>'
refused "a library that belongs to another folder" \
	"operator/manager.c includes <curl/curl.h>, which belongs to: lib/kube"

# plant_call BODY: a function with this body in books.c, which allocate.c calls.
plant_call() {
	fresh
	printf '\nvoid planted(struct planted *it)\n{\n\t%s\n}\n' "$1" >>"$work/tree/reconcilers/ipam/allocate/books.c"
}

plant_call 'ipam_give_back(it->books, it->status);'
refused "a circle of calls" "reconcilers/ipam/allocate/books.c names ipam_give_back() of reconcilers/ipam/allocate/allocate.c"

plant_call 'it->give_back = ipam_give_back;'
refused "a circle through a value" "reconcilers/ipam/allocate/books.c names ipam_give_back() of reconcilers/ipam/allocate/allocate.c"

fresh
printf '\nstatic const struct row planted[] = {\n\t{"back", ipam_give_back},\n};\n' >>"$work/tree/reconcilers/ipam/allocate/books.c"
refused "a circle through a table" "reconcilers/ipam/allocate/books.c names ipam_give_back() of reconcilers/ipam/allocate/allocate.c"

plant_call 'it->ipam_give_back(it, "ipam_give_back()"); /* no call of ipam_give_back() */'
t_ok "members and words are no calls" layers

t_done
