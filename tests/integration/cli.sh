# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the tests of the command line share: a small cluster as YAML, and looking at output and exit status.

# A cluster in one file: a pool with a leaked address, a pod that has its address, and one that gets none.
world() {
	cat <<'END'
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: rail1}
spec: {ipVersion: 4, subnet: 10.6.0.0/24, ips: [10.6.0.10-10.6.0.12], gateway: 10.6.0.1}
status:
  allocatedIPs: '{"10.6.0.10":{"pod":"ml/train-0","podUid":"UID0"},"10.6.0.12":{"pod":"ml/gone","podUid":"u9"}}'
  allocatedIPCount: 3
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: rail2}
spec: {ipVersion: 6, subnet: "fd00::/64", ips: ["fd00::10-fd00::ffff:ffff:ffff"], nodeName: [n9]}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: rail1, namespace: ml}
spec: {config: '{"cniVersion":"0.3.1","name":"rail1","plugins":[{"type":"macvlan","ipam":{"type":"spiderpool","default_ipv4_ippool":["rail1"]}}]}'}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: rail2, namespace: ml}
spec: {config: '{"cniVersion":"0.3.1","name":"rail2","plugins":[{"type":"macvlan","ipam":{"type":"spiderpool","default_ipv6_ippool":["rail2"]}}]}'}
---
apiVersion: v1
kind: Pod
metadata: {name: train-0, namespace: ml, uid: UID0, annotations: {k8s.v1.cni.cncf.io/networks: rail1}}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: train-1, namespace: ml, uid: UID1, annotations: {k8s.v1.cni.cncf.io/networks: "rail1,rail2"}}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
END
}

endpoints() {
	cat <<'END'
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderEndpoint
metadata: {name: train-0, namespace: ml}
status: {current: {uid: UID0, node: n1, ips: [{interface: net1, ipv4: 10.6.0.10/24, ipv4Pool: rail1}]}, ownerControllerType: Pod, ownerControllerName: train-0}
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderEndpoint
metadata: {name: gone, namespace: ml, finalizers: [spiderpool.spidernet.io]}
status: {current: {uid: u9, node: n1, ips: [{interface: net1, ipv4: 10.6.0.12/24, ipv4Pool: rail1}]}, ownerControllerType: Pod, ownerControllerName: gone}
END
}

# exits STATUS COMMAND...: what it printed, if it ends with that status.
exits() {
	local want=$1 status=0

	shift
	"$@" 2>&1 || status=$?
	((status == want))
}

# The output as a whole: a program that still writes when grep has found the text would end by a signal.
says() {
	local text=$1 want=$2 said

	shift 2
	said=$(exits "$want" "$@") && grep -qF -- "$text" <<<"$said"
}
