#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The definition of NetworkAttachmentDefinition: on a cluster without Multus the operator creates it, with its account's rights, and
# networks are rendered; one that another program brought stays as it is. The same of the SpiderCoordinator that pods need.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

name='network-attachment-definitions.k8s.cni.cncf.io'
path=/apis/apiextensions.k8s.io/v1/customresourcedefinitions/$name

definition() {
	o_curl GET "$path" | jq -cS "$1"
}

none_is_there() {
	! k get crd "$name" 2>/dev/null
}

has_phase() {
	[[ $(k get spidercoordinator default -o 'jsonpath={.status.phase}') ]]
}

in_the_tree() {
	k create --dry-run=client -o json -f crds/nad/ | jq -cS "$1"
}

network='{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetwork","metadata":{"name":"n","namespace":"kube-system"},
	"spec":{"resourceName":"roce","networkNamespace":"default"}}'
what='[.spec.names.kind, .spec.scope, [.spec.versions[] | [.name, .schema, .additionalPrinterColumns]]]'

o_begin definition
k delete -f crds/nad/ >/dev/null
t_wait 30 "a cluster without Multus" none_is_there
o_own_user
k apply -f - <<<"$network" >/dev/null
o_start first
t_wait 60 "the operator creates the definition" definition .metadata.name
t_eq "it is that of the tree" "$(in_the_tree "$what")" "$(definition "$what")"
t_wait 60 "a network is rendered" k get -n default net-attach-def/n
o_kill first TERM
o_reap first

o_curl PATCH "$path" '{"metadata":{"annotations":{"brought-by":"multus"}},"spec":{"names":{"categories":["theirs"]}}}' >/dev/null
before=$(definition '[.metadata.uid, .metadata.annotations, .spec]')
o_start second
t_wait 60 "an operator watches networks of another program's definition" grep -q '"msg":"leading' "$tmp/second.log"
k delete -n default net-attach-def/n >/dev/null
t_wait 60 "the network is rendered again" k get -n default net-attach-def/n
t_eq "that definition is as it was" "$before" "$(definition '[.metadata.uid, .metadata.annotations, .spec]')"

t_wait 120 "the SpiderCoordinator that pods need is there" k get spidercoordinator default
t_wait 30 "it has a status" has_phase
k patch spidercoordinator default --type merge -p '{"spec":{"podCIDRType":"none"}}' >/dev/null
o_kill second TERM
o_reap second
o_start third
t_wait 60 "an operator leads" grep -q '"msg":"leading' "$tmp/third.log"
t_eq "one that is there stays as it is" none "$(k get spidercoordinator default -o jsonpath='{.spec.podCIDRType}')"
t_done
