#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/spdx: which files need a license line, where --add writes it, and that it writes it once.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/lib.sh

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/hack" "$tree/tests/fuzz/corpus/x"
cp hack/spdx "$tree/hack"
cd "$tree"
git init -q

printf '/* One. */\nint one;\n' >one.c
printf '#!/bin/bash\necho two\n' >two
printf 'all:\n' >Makefile
printf '# shellcheck shell=bash\n' >three.sh
printf '{}\n' >data.json
printf '#!/bin/sh\n' >tests/fuzz/corpus/x/four
printf 'a\n\n\n\n// SPDX-License-Identifier: Apache-2.0\n' >five.go
printf 'a\n\n\n\n\n// SPDX-License-Identifier: Apache-2.0\n' >six.h
chmod 755 two
ln -s two seven

t_eq "lists what lacks the line" "Makefile one.c six.h three.sh two" \
	"$(hack/spdx | sed -n 's/: no .*//p' | LC_ALL=C sort | xargs)"
t_fails "and fails" hack/spdx
t_fails "for one file alone, too" hack/spdx one.c
t_ok "a file that needs none passes" hack/spdx data.json
t_ok "--add succeeds" hack/spdx --add
t_eq "in C above all" "// SPDX-License-Identifier: Apache-2.0|/* One. */|int one;" "$(paste -sd'|' one.c)"
t_eq "in a script after its first line" "#!/bin/bash|# SPDX-License-Identifier: Apache-2.0|echo two" "$(paste -sd'|' two)"
t_eq "which stays executable" 755 "$(stat -c %a two)"
t_ok "nothing is left to say" hack/spdx
cp one.c before
t_ok "--add again succeeds" hack/spdx --add
t_ok "and changes nothing" cmp one.c before
rm one.c
t_ok "a removed file is passed over" hack/spdx
status=0
hack/spdx --ad 2>/dev/null || status=$?
t_eq "an unknown option is an error of usage" 2 "$status"
t_done
