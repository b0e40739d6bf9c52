#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The operator's token is rotated under it: the file gets a new one, the old one is revoked. Then the authority that signs the
# API server's certificate is another one. Users notice nothing.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

account=orbweaver-operator
accounts=/api/v1/namespaces/$POD_NAMESPACE/serviceaccounts
configs=$spider/namespaces/default/spidermultusconfigs

# A token that lives as long as a Secret does: deleting that revokes it.
new_token() {
	local secret=$1 uid

	uid=$(o_curl POST "/api/v1/namespaces/$POD_NAMESPACE/secrets" "{\"metadata\":{\"name\":\"$secret\"}}" | jq -r .metadata.uid)
	o_curl POST "$accounts/$account/token" "{ \"apiVersion\": \"authentication.k8s.io/v1\", \"kind\": \"TokenRequest\",
		\"spec\": { \"expirationSeconds\": 86400, \"boundObjectRef\":
			{ \"apiVersion\": \"v1\", \"kind\": \"Secret\", \"name\": \"$secret\", \"uid\": \"$uid\" } } }" |
		jq -er .status.token >"$tmp/$secret"
}

revoke() {
	o_curl DELETE "/api/v1/namespaces/$POD_NAMESPACE/secrets/$1" >/dev/null
}

token_status() {
	curl -s --noproxy '*' --cacert "$o_dir/pki/ca.crt" -H "Authorization: Bearer $(<"$tmp/$1")" -o /dev/null \
		-w '%{http_code}' "$o_api$configs"
}

# The API server remembers good tokens for 10 s.
is_revoked() {
	[[ $(token_status "$1") == 401 ]]
}

# As the kubelet does it: the old or the new content, never a part.
put_token() {
	cp "$tmp/$1" "$token_file.new" && mv "$token_file.new" "$token_file"
}

make_config() {
	o_curl POST "$configs" "{\"apiVersion\":\"spiderpool.spidernet.io/v2beta1\",\"kind\":\"SpiderMultusConfig\",
		\"metadata\":{\"name\":\"$1\"},\"spec\":{\"cniType\":\"macvlan\",\"macvlan\":{\"master\":[\"eth1\"]}}}" >/dev/null
	t_wait 20 "$2" o_condition "$configs/$1" True Rendered
}

o_begin token --no-controllers
o_own_user
token_file=$(sed -n 's/.*tokenFile: //p' "$o_kubeconfig")
t_ok "the kubeconfig names a token file" test -f "$token_file"

new_token first
put_token first
o_start op
o_wait_ready op
make_config before "a config is dealt with"

# --- in good time: the new token is there before the old one goes -------------------------------------------------------

new_token second
put_token second
revoke first
t_wait 30 "the API server refuses the old token" is_revoked first
make_config after "a config is dealt with, although the first token is no good any more"
o_wait_ready op
t_eq "nobody was told of an error" 0 "$(o_error_lines op)"

# --- too late: for a while there is no good token -----------------------------------------------------------------------

new_token third
revoke second
t_wait 30 "the API server refuses the second token" is_revoked second
o_curl POST "$configs" '{"apiVersion":"spiderpool.spidernet.io/v2beta1","kind":"SpiderMultusConfig","metadata":{"name":"late"},
	"spec":{"cniType":"macvlan","macvlan":{"master":["eth1"]}}}' >/dev/null
sleep 2
put_token third
t_wait 30 "what changed meanwhile is dealt with once the third token is there" o_condition "$configs/late" True Rendered
o_wait_ready op
t_ok "the operator never went away" o_runs op

# --- everything anew with the new token -------------------------------------------------------------------------------

t_ok "the API server restarts" hack/cluster stop "$o_cluster" apiserver
t_ok "and is back" hack/cluster start "$o_cluster" apiserver
o_wait_ready op
make_config last "watches and writes go on with the token of the day"

# --- another authority ------------------------------------------------------------------------------------------------

t_ok "another authority signs the API server's certificate" hack/cluster rotate-ca "$o_cluster"
make_config signed "a config is dealt with, although what the operator trusted first is no good any more"
o_wait_ready op
t_ok "the log says that the file was read again" o_logged op '.msg | contains("certificate authorities have changed")'
t_wait 10 "nothing is left to do" o_rest
t_ok "no token is in the log" test "$(grep -cF -e "$(<"$tmp/first")" -e "$(<"$tmp/third")" "$tmp/op.log")" = 0
o_end op
t_done
