# SPDX-License-Identifier: Apache-2.0
# What `orbweaver plan` says of a node, and what the node shows of the same, in the same words (tests/vm/plan_test.sh).
#
# Input of pfs_said and pfs_shown, PFs as {ADDRESS: {mtu, vfs: [{address, function, driver, mtu}]}}:
#
#	{"plan": the document, "first": PFs as the agent found them, "was": before the change, "is": afterwards,
#	 "held": [addresses of VFs that pods have afterwards]}

def node: .nodes[0];

# "evict: play/p1 0000:01:10.0"
def cost_words: "\(.class):" + ([.pods // [] | .[] | " \(.pod) \(.device)"] | unique | join(","));

# "a Overruled, b TooManyVfs"
def policies_said: [.policiesNotMet[] | "\(.policy | sub(".*/"; "")) \(.reason)"] | unique | join(", ");
def policies_shown: if any(.items[]; .metadata.generation as $now | .status.conditions // [] |
		any(.type == "Ready" and .observedGeneration == $now and (.reason | IN("SpecPending", "Syncing") | not)) | not)
	then "not all are known yet"
	else [.items[] | .metadata.name as $name | .status.conditions[] | select(.type == "Degraded" and .status == "True") |
		"\($name) \(.reason)"] | unique | join(", ") end;

def changes($pf): [.plan | node | .changes[] | select(.pciAddress == $pf)];

def are_remade: any(.vfs != .vfsBefore or (.message | contains("all VFs are removed first")));

def wish($pf): .plan | node | .spec.interfaces // [] | map(select(.pciAddress == $pf)) | first;

def group_of($number): [.vfGroups // [] | .[] | select((.vfRange / "-" | map(tonumber)) as [$from, $to] |
	$from <= $number and $number <= $to)] | first;

def function_words($was; $is): ($was | map(.function)) as $a | ($is | map(.function)) as $b |
	if $was == $is then "untouched" elif $a == $b then "the same" elif $a - $b == $a then "new" else "some are new" end;

# A PF as it should be by what was said: how many VFs it had and has, whether they are the same ones, its MTU; of each VF its
# driver and, where a policy gives it one and no pod keeps the old one, its MTU.
def pf_said($pf):
	changes($pf) as $changes | wish($pf) as $wish | .was[$pf] as $was | .held as $held | .is[$pf] as $is |
	($changes | any(.message | contains("nothing is done"))) as $is_refused |
	(if $changes == [] then $was.vfs | length else $changes[-1].vfs end) as $vfs |
	{
		before: ($changes[0].vfsBefore // ($was.vfs | length)),
		after: $vfs,
		functions: (if $changes == [] or $is_refused then "untouched" elif $changes | are_remade then "new" else "the same" end),
		mtu: (if $changes | any(.message | contains("no policy wants the NIC any more")) then .first[$pf].mtu
			else [$changes[].message | capture("MTU is raised to (?<mtu>[0-9]+)").mtu | tonumber] | first // $was.mtu end),
		vfs: [range($vfs) as $number | $was.vfs[$number] as $had | ($wish // {} | group_of($number)) as $group | {
			driver: (if $is_refused or ($group == null and ($changes | are_remade | not)) then $had.driver
				elif $group.deviceType == "vfio-pci" then "vfio-pci"
				else "igbvf" end),
			mtu: (if $is_refused or $group.mtu == null or $group.deviceType == "vfio-pci" or
				($is.vfs[$number].address | IN($held[])) then null else $group.mtu end)
		}]
	};

def pf_shown($pf):
	pf_said($pf) as $said | .was[$pf] as $was | .is[$pf] as $is |
	function_words($was.vfs; $is.vfs) as $functions |
	{
		before: ($was.vfs | length),
		after: ($is.vfs | length),
		functions: (if $said.functions == "the same" and $functions == "untouched" then "the same" else $functions end),
		mtu: $is.mtu,
		vfs: [range($is.vfs | length) as $number | $is.vfs[$number] |
			{ driver, mtu: (if $said.vfs[$number].mtu then .mtu else null end) }]
	};

def pf_words: "\(.before) -> \(.after) VFs, \(.functions), MTU \(.mtu):" +
	([.vfs[] | " \(.driver)" + (if .mtu then "/\(.mtu)" else "" end)] | join(""));

def pfs_said: . as $all | .was | keys | map(. as $pf | "\($pf) " + ($all | pf_said($pf) | pf_words)) | join("; ");
def pfs_shown: . as $all | .was | keys | map(. as $pf | "\($pf) " + ($all | pf_shown($pf) | pf_words)) | join("; ");

# PFs that wait for pods, and whose VFs are not those that they had all the same.
def pfs_not_kept: . as $all | .was | keys | map(select(. as $pf | ($all | changes($pf) | any(.class == "evict") and are_remade) and
	($all.was[$pf].vfs | map(.function)) != ($all.is[$pf].vfs | map(.function)))) | join(", ");
