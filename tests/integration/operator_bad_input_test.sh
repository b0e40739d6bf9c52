#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What people get wrong: kubeconfigs, flags, servers that are not there or not trusted, missing rights, missing CRDs. Each gives
# one clear line and an exit code, or an operator that waits, not ready, without haste, and goes on once it is put right.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

watch_s=2

# --- wrong from the start -----------------------------------------------------------------------------------------

# gives_up STATUS WORD FLAG...: ends by itself with that status, and one line that has the word.
gives_up() {
	local want=$1 word=$2 status=0

	shift 2
	timeout 10 "$o_operator" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || status=$?
	cat "$tmp/out" "$tmp/err"
	[[ $status == "$want" && ! -s $tmp/out && $(grep -c '' "$tmp/err") == 1 ]] && grep -qF -e "$word" "$tmp/err"
}

# kubeconfig_with NAME CLUSTER USER: as YAML flow maps.
kubeconfig_with() {
	cat >"$tmp/$1.kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: default
contexts: [{name: default, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: $2}]
users: [{name: u, user: $3}]
END
	echo "$tmp/$1.kubeconfig"
}

bad_kubeconfigs() {
	local good='{server: "https://127.0.0.1:1"}' binary

	: >"$tmp/empty"
	binary=$tmp/binary
	head -c 512 /dev/urandom >"$binary"
	t_ok "a kubeconfig that is not there" gives_up 1 "$tmp/nothing" --kubeconfig "$tmp/nothing"
	t_ok "a folder" gives_up 1 "$tmp" --kubeconfig "$tmp"
	t_ok "an empty file" gives_up 1 current-context --kubeconfig "$tmp/empty"
	t_ok "no YAML at all" gives_up 1 "$binary" --kubeconfig "$binary"
	t_ok "a context that is not there" gives_up 1 '"elsewhere"' --context elsewhere \
		--kubeconfig "$(kubeconfig_with context "$good" '{token: t}')"
	t_ok "a cluster without a server" gives_up 1 server --kubeconfig "$(kubeconfig_with server '{}' '{token: t}')"
	t_ok "a server without https://" gives_up 1 10.0.0.1 \
		--kubeconfig "$(kubeconfig_with scheme '{server: "10.0.0.1:6443"}' '{token: t}')"
	t_ok "a CA that is not there" gives_up 1 "$tmp/no.crt" \
		--kubeconfig "$(kubeconfig_with ca "{server: 'https://a', certificate-authority: $tmp/no.crt}" '{token: t}')"
	t_ok "a CA that is no certificate" gives_up 1 certificate-authority-data --kubeconfig "$(kubeconfig_with data \
		"{server: 'https://a', certificate-authority-data: $(base64 <<<nonsense)}" '{token: t}')"
	t_ok "a CA that is no base64" gives_up 1 certificate-authority-data \
		--kubeconfig "$(kubeconfig_with base64 "{server: 'https://a', certificate-authority-data: '%%'}" '{token: t}')"
	t_ok "a certificate without a key" gives_up 1 client-key \
		--kubeconfig "$(kubeconfig_with key "$good" "{client-certificate: $o_dir/pki/admin.crt}")"
	t_ok "a token file that is not there" gives_up 1 "$tmp/no.token" \
		--kubeconfig "$(kubeconfig_with token "$good" "{tokenFile: $tmp/no.token}")"
	t_ok "no kubeconfig anywhere" without_kubeconfig
}

without_kubeconfig() {
	unset KUBECONFIG
	HOME=$tmp gives_up 1 --kubeconfig
}

bad_flags() {
	local taken

	taken=$(sed -n s/^apiserver=//p "$o_dir/ports")
	t_ok "an unknown flag" gives_up 2 --frobnicate --frobnicate
	t_ok "an argument that is no flag" gives_up 2 now now
	t_ok "a flag without its value" gives_up 2 --namespace --namespace
	t_ok "a flag with a wrong value" gives_up 2 perhaps --leader-elect=perhaps
	t_ok "a log level that there is not" gives_up 2 loud --log-level loud
	t_ok "a namespace that cannot be one" gives_up 2 Name_Space --namespace Name_Space
	t_ok "an address that is none" gives_up 1 nowhere --metrics-addr nowhere --health-addr 0 --kubeconfig "$kubeconfig"
	t_ok "a TLS version that is too old" gives_up 1 'must be VersionTLS12 or VersionTLS13' --tls-min-version VersionTLS10 \
		--kubeconfig "$kubeconfig" --metrics-addr 0 --health-addr 0
	t_ok "a cipher suite that is none" gives_up 1 '--tls-cipher-suites: "AES"' --tls-cipher-suites AES --kubeconfig "$kubeconfig" \
		--metrics-addr 0 --health-addr 0
	t_ok "authorities that are not there" gives_up 1 "$tmp/nowhere.crt" --webhook-client-ca "$tmp/nowhere.crt" \
		--kubeconfig "$kubeconfig" --metrics-addr 0 --health-addr 0
	t_ok "a port that is taken" gives_up 1 "$taken" --metrics-addr "127.0.0.1:$taken" --health-addr 0 --kubeconfig "$kubeconfig"
}

# --- not usable now, perhaps later --------------------------------------------------------------------------------

# Not ready, and the reason is on the page.
not_ready() {
	local page

	page=$(o_http "$1" /readyz) && echo "$page" && [[ $page == *"$2"* ]] && ! o_ready "$1"
}

# waits ID WORD LINES: says so in at most so many error lines, stays, and takes its time.
waits() {
	local id=$1 word=$2 lines=$3 cpu

	t_wait 20 "$id: the log says what is wrong" o_logged "$id" \
		".level == \"error\" and (tojson | contains(\"$word\"))"
	t_wait 5 "$id: /readyz says it too" not_ready "$id" "$word"
	cpu=$(o_cpu_ms "$id")
	sleep "$watch_s"
	cpu=$(($(o_cpu_ms "$id") - cpu))
	t_ok "$id: it waits without haste ($cpu ms of CPU in $watch_s s)" test "$cpu" -lt $((watch_s * 100))
	t_ok "$id: and without many words ($(o_error_lines "$id") error lines)" test "$(o_error_lines "$id")" -le "$lines"
	t_ok "$id: it is alive" o_http "$id" /healthz
}

o_with() {
	o_kubeconfig=$2 o_start "$1" "${@:3}"
}

bad_servers() {
	o_with unreachable "$(kubeconfig_with unreachable '{server: "https://127.0.0.1:1"}' '{token: t}')"
	waits unreachable 127.0.0.1:1 1
	o_end unreachable
	o_with untrusted "$(kubeconfig_with untrusted \
		"{server: '$o_api', certificate-authority: $o_dir/pki/client-ca.crt}" '{token: t}')"
	waits untrusted certificate 1
	o_end untrusted
	o_with wrong-name "$(kubeconfig_with name "{server: '$o_api', certificate-authority: $o_dir/pki/ca.crt,
		tls-server-name: somewhere.else}" '{token: t}')"
	waits wrong-name somewhere.else 1
	o_end wrong-name
	o_with wrong-token "$(kubeconfig_with wrong "{server: '$o_api', certificate-authority: $o_dir/pki/ca.crt}" '{token: nobody}')"
	waits wrong-token Unauthorized 1
	o_end wrong-token
}

# A credential plugin may be installed later, as the server may come up later.
no_plugin() {
	o_with no-plugin "$(kubeconfig_with exec "{server: '$o_api', certificate-authority: $o_dir/pki/ca.crt}" \
		"{exec: {apiVersion: client.authentication.k8s.io/v1, command: $tmp/plugin, interactiveMode: Never}}")"
	waits no-plugin "$tmp/plugin" 1
	printf '#!/bin/sh\necho \x27%s\x27\n' "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",
		\"status\":{\"token\":\"$(<"$o_dir/pki/token")\"}}" >"$tmp/plugin"
	chmod +x "$tmp/plugin"
	t_wait 60 "once the plugin is there the operator is ready" o_ready no-plugin
	o_end no-plugin
}

# The server comes later, on an address that is known before.
late_server() {
	hack/cluster stop "$o_cluster" apiserver
	o_start late
	waits late "$o_api" 1
	t_ok "the server starts after the operator" hack/cluster start "$o_cluster" apiserver
	o_wait_ready late
	o_end late
}

no_rights() {
	o_with no-rights "$(o_user nobody-special)"
	waits no-rights "list and watch on sriovnetworknodepolicies" 50
	t_wait 5 "missing rights: the line names verb, resource and user" o_logged no-rights '.level == "error" and
		(.error | contains("cannot list resource \"spidermultusconfigs\"") and contains("nobody-special"))'
	t_wait 5 "the lease is named too" o_logged no-rights '.level == "error" and (.error | contains("leases"))'
	o_grant nobody-special
	t_wait 60 "once it has the rights it is ready" o_ready no-rights
	o_end no-rights
}

# Reading is allowed, writing is not: what cannot be carried out is said, with verb and resource.
no_write_rights() {
	k create clusterrole reader --verb get,list,watch --resource '*.*' >/dev/null
	k create clusterrole leader --verb get,create,update,patch --resource leases.coordination.k8s.io >/dev/null
	k create clusterrolebinding reader --clusterrole reader --user reader >/dev/null
	k create clusterrolebinding leader --clusterrole leader --user reader >/dev/null
	o_with reader "$(o_user reader)"
	o_wait_ready reader
	k apply -f crds/samples/roce-zh-macvlan.yaml >/dev/null
	t_wait 15 "a write that is not allowed is told with verb and resource" o_logged reader '.level == "error" and
		(.error | contains("cannot create resource \"network-attachment-definitions\""))'
	sleep 5
	t_ok "it is tried again, but not in haste ($(o_error_lines reader) error lines)" test "$(o_error_lines reader)" -le 60
	k create clusterrolebinding writer --clusterrole orbweaver-operator --user reader >/dev/null
	t_wait 60 "once it has the right, the NetworkAttachmentDefinition comes" o_nad kube-system macvlan-ens6f0np0
	t_wait 30 "nothing is left to do" o_rest
	o_end reader
}

# What is seen no more is a gauge.
broken() {
	o_http "$1" /metrics | grep -F "orbweaver_informer_broken_seconds{kind=\"$2\""
}

not_broken() {
	! o_http "$1" /metrics | grep -F 'orbweaver_informer_broken_seconds{'
}

no_crd() {
	local crd=spidermultusconfigs.spiderpool.spidernet.io

	k delete crd "$crd" >/dev/null
	o_start no-crd
	waits no-crd "kubectl apply -f crds/$crd.yaml" 2
	k apply -f crds/ >/dev/null
	t_wait 60 "once the CRD is there it is ready" o_ready no-crd
	k apply -f crds/samples/roce-zh-macvlan.yaml >/dev/null
	t_wait 20 "and works" o_nad kube-system macvlan-ens6f0np0
	k delete crd "$crd" >/dev/null
	t_wait 60 "a CRD that is taken away under it is missed" broken no-crd spidermultusconfigs
	t_ok "but what it saw before serves" o_ready no-crd
	k apply -f crds/ >/dev/null
	t_wait 60 "and found again" not_broken no-crd
	o_end no-crd
}

o_begin bad --no-controllers
o_own_user
bad_kubeconfigs
bad_flags
bad_servers
no_plugin
late_server
no_rights
no_write_rights
no_crd
t_done
