#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Counters of devices in the agent's metrics, on a node made of files with a real API server: what a scrape shows of PFs, of VFs in
# pods' namespaces and of the pods' owners; what it does about a device that does not answer; and what the loop does meanwhile.
set -euo pipefail

((EUID == 0)) || { echo "skipped: needs root" && echo "0 passed, 0 failed" && exit 0; }
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/integration/operator.sh

# What is shown of a metric, where the labels have this text: its value.
shown() {
	grep "^$1{" "$tmp/metrics" | grep -F "$2" | sed 's/.*} //'
}

# Whatever is there by now; nothing is gathered twice within 5 s.
scrape() {
	o_http agent /metrics >"$tmp/metrics"
}

has() {
	scrape && [[ -n $(shown "$1" "$2") ]]
}

fails() {
	scrape && [[ $(shown orbweaver_rdma_scrape_failed "$1") == 1 ]]
}

# It also has opinions on names, which are others'.
readable() {
	[[ $(promtool check metrics <"$tmp/metrics" 2>&1) != *"error while"* ]]
}

states=/apis/sriovnetwork.openshift.io/v1/namespaces/$POD_NAMESPACE/sriovnetworknodestates
is_reported() {
	o_curl GET "$states/n1" | jq -e 'any(.status.interfaces[]?; .name == "ens1f0np0")' >/dev/null
}

# Descriptors of pods' namespaces in processes of the agent; each would keep the namespace, and with it the VF.
kept_open() {
	local supervisor pid

	read -r supervisor _ <"$tmp/agent.out"
	for pid in "$supervisor" $(pgrep -P "$supervisor"); do
		find "/proc/$pid/fd" -lname '*/netns/*' -printf '%p %l\n' 2>/dev/null || true
	done
}

o_begin counters --no-controllers
o_agent_user
k create namespace ml >/dev/null
o_curl POST /api/v1/namespaces/ml/pods '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train-0", "labels":
	{"pod-template-hash": "6d4cf"}, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "train-6d4cf",
	"uid": "7", "controller": true}]}, "spec": {"containers": [{"name": "main", "image": "i"}], "nodeName": "n1"}}' >/dev/null
o_spawn agent "$o_programs/tests/counters-node" 2 3 2 --node n1 --kubeconfig "$agent_kubeconfig" --metrics-addr :0 \
	--profile devices
t_wait 30 "a PF's counters" has rdma_out_of_sequence_total 'ifname="mlx5_0",net_dev_name="ens0f0np0",is_root="true"'
t_wait 30 "those of a VF, by the name that it has in the pod, with the pod and who made it" has rdma_out_of_sequence_total \
	'ifname="mlx5_0v0",net_dev_name="net1",is_root="false",rdma_parent_name="ens0f0np0",pod_namespace="ml",pod_name="train-0",owner_kind="Deployment",owner_namespace="ml",owner_name="train"'
t_eq "a pod that cannot be read has no owner, and counters all the same" 3005 \
	"$(shown rdma_out_of_sequence_total 'pod_name="train-1"}')"
t_eq "bytes of RDMA come from the interface" 3006 "$(shown rdma_rx_vport_rdma_unicast_bytes_total 'pod_name="train-0"')"
t_eq "speed, under the name that dashboards know" 25000 "$(shown rdma_vport_speed_mbps_total 'ifname="mlx5_1",')"
t_eq "pauses by priority" 6018 "$(shown rdma_rx_pause_total 'ifname="mlx5_1",net_dev_name="ens1f0np0",is_root="true",rdma_parent_name="ens1f0np0",priority="3"')"
t_eq "a VF that nobody has is not read" "" "$(shown rdma_out_of_sequence_total 'ifname="mlx5_0v2"')"
t_eq "but its PF has counted for it" 202 "$(shown sriov_vf_rx_bytes 'pf="ens0f0np0",vf="2",pciAddr="0000:11:00.2",numa_node="0"')"
t_eq "who has which device, for a join" 1 \
	"$(shown sriov_kubepoddevice 'pciAddr="0000:11:00.1",dev_type="spidernet.io/fast",pod="train-1",namespace="ml",container="main"')"
t_eq "no namespace of a pod is kept open" "" "$(kept_open)"
t_eq "all went well" "" "$(shown orbweaver_rdma_scrape_failed '')"
t_ok "Prometheus can read it" readable

t_eq "forward error correction, and frames with a wrong checksum" "604 601" "$(shown rdma_fec_uncorrectable_blocks_total 'ifname="mlx5_1"') $(
	shown rdma_ethernet_checksum_errors_total 'ifname="mlx5_1"')"

# --- files of a port, all that the kernel's documentation has (sysfs-class-infiniband): one each, data in words of four --------------
read -r _ root <"$tmp/agent.out"
port=$root/sys/class/infiniband/mlx5_0/ports/1/counters
mkdir -p "$port"
n=0
for file in VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors \
	{multicast,unicast}_{rcv,xmit}_packets port_{rcv,xmit}_{constraint_errors,data,packets} port_rcv_errors \
	port_rcv_{remote_physical,switch_relay}_errors port_xmit_discards port_xmit_wait; do
	echo $((n += 1)) >"$port/$file"
done
# The end of 32 bits; it wraps below.
echo 4294967295 >"$port/symbol_error"
of_port() {
	for metric in vl15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors \
		{multicast,unicast}_packets_{received,transmitted} port_{constraint_errors,data,packets}_{received,transmitted}{,_bytes} \
		port_errors_received port_receive_{remote_physical,switch_relay}_errors port_discards_transmitted port_transmit_wait symbol_error; do
		shown "rdma_${metric}_total" 'ifname="mlx5_0",'
	done | xargs
}
t_wait 30 "a file is a metric" has rdma_symbol_error_total 'ifname="mlx5_0",'
t_eq "each file is" "1 2 3 4 5 6 7 8 9 10 13 44 56 12 15 16 17 18 19 20 4294967295" "$(of_port)"
echo 2 >"$port/symbol_error"
echo 0 >"$port/link_downed"
echo "N/A (no PMA)" >"$port/port_xmit_wait"
t_wait 30 "a counter that wraps is what it says" has rdma_symbol_error_total 'is_root="true",rdma_parent_name="ens0f0np0"} 2'
t_eq "so is one that was reset; one that the adapter does not have is none" "0 -" "$(
	shown rdma_link_downed_total 'ifname="mlx5_0",') $(shown rdma_port_transmit_wait_total 'ifname="mlx5_0",')-"

# --- orbweaver top, by the API server's proxy, which reaches no loopback -----------------------------------------------------------
address=$(hostname -I | awk '{ print $1 }')
if [[ -n $address ]]; then
	read -r _ root <"$tmp/agent.out"
	data=$root/sys/class/infiniband/mlx5_1/ports/1/counters/port_rcv_data
	mkdir -p "${data%/*}"
	for ((words = 0; ; words += 1000000)); do
		echo "$words" >"$data.new" && mv "$data.new" "$data" && sleep 0.2
	done 2>/dev/null &
	counting=$!
	# agent_pod NODE FLAG: an agent's pod that runs, and its NodeState.
	agent_pod() {
		o_curl POST "/api/v1/namespaces/$POD_NAMESPACE/pods" "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"agent-$1\",
			\"labels\": {\"app.kubernetes.io/name\": \"orbweaver-agent\"}}, \"spec\": {\"nodeName\": \"$1\", \"containers\": [{\"name\": \"agent\",
			\"image\": \"i\", \"args\": [\"$2\"]}]}}" >/dev/null
		o_curl PATCH "/api/v1/namespaces/$POD_NAMESPACE/pods/agent-$1/status" \
			"{\"status\": {\"phase\": \"Running\", \"podIP\": \"$address\", \"podIPs\": [{\"ip\": \"$address\"}]}}" >/dev/null
		o_curl POST "$states" "{\"apiVersion\": \"sriovnetwork.openshift.io/v1\", \"kind\": \"SriovNetworkNodeState\", \"metadata\": {\"name\": \"$1\"}}" >/dev/null
	}
	agent_pod n1 "--metrics-addr=:$(o_port agent metrics)"
	agent_pod n2 --metrics-addr=:1
	agent_pod n3 --metrics-addr=127.0.0.1:9810
	t_wait 30 "its NodeState has the port" is_reported
	t_wait 30 "and the agent its counter" has rdma_port_data_received_bytes_total 'ifname="mlx5_1",'
	t_eq "rates of a port" "[true,0]" "$("$o_programs/orbweaver" top n1 --kubeconfig "$kubeconfig" -o json |
		jq -c '.ports[] | select(.port == "ens1f0np0") | [.received > 0, .pause]')"
	kill "$counting"
	rm "$data"
	# left_out NODE WORDS: there are no rates of it, and why.
	left_out() {
		"$o_programs/orbweaver" top "$1" --once --kubeconfig "$kubeconfig" 2>&1 >/dev/null |
			grep -F "left out: rates of 1 nodes: " | grep -qF -- "$2"
	}
	t_ok "an agent that does not answer has none" left_out n2 "agent-n2: "
	t_ok "nor one that serves its node alone, with what to do" left_out n3 "start it with --metrics-addr=:9810"
fi

# --- a device that does not answer -----------------------------------------------------------------------------------------------
mkdir -p "$root/sys/class/infiniband/mlx5_1/tc/1"
mkfifo "$root/sys/class/infiniband/mlx5_1/tc/1/traffic_class"
sleep 5.1
scrape &
scraping=$!
answers=0
while kill -0 "$scraping" 2>/dev/null; do
	! o_http agent /healthz >/dev/null || answers=$((answers + 1))
done
wait "$scraping" || true
t_ok "the agent answers others while a scrape waits for the device" test "$answers" -gt 1
t_wait 30 "the device is named" fails 'ifname="mlx5_1",net_dev_name="ens1f0np0",pci_address="0000:20:00.0"'
t_eq "its counters are missing" "" "$(shown rdma_out_of_sequence_total 'ifname="mlx5_1"')"
t_eq "those of others are there" 3005 "$(shown rdma_out_of_sequence_total 'pod_name="train-1"')"
t_eq "no meter is left behind" "orbweaver_hostd_stuck_workers 0" "$(grep '^orbweaver_hostd_stuck_workers ' "$tmp/metrics")"
: >"$tmp/agent.out"
o_end agent
t_done
