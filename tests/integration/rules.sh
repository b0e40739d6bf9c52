# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the rules of manifests/overlays/crd-rules are to say, for those who ask the code of Kubernetes 1.36
# (newer_api_test.sh) and its server (newer_server_test.sh).

# A line for each fault: KIND|what is refused|field|text|what is let through|a change of something else in an object of before
rules_table() {
	local policy='"nodeSelector":{},"numVfs":1' nic='"nicSelector":{"vendor":"15b3"}' type block

	for type in macvlan:'{"master":["a"]}' ipvlan:'{"master":["a"]}' vlan:'{"master":["a"]}' sriov:'{"resourceName":"a/b"}' \
		ibsriov:'{"resourceName":"a/b"}' ipoib:'{"master":"a"}' ovs:'{"bridge":"a"}'; do
		block=${type%%:*}
		# shellcheck disable=SC2030 # printed here
		cni=${block/ibsriov/ib-sriov}
		cat <<END
SpiderMultusConfig|{"cniType":"$cni"}|spec.$block|cniType $cni needs its settings there|{"cniType":"$cni","$block":${type#*:}}|{"disableIPAM":true}
SpiderMultusConfig|{"$block":${type#*:}}|spec.$block|set spec.cniType to $cni|{"cniType":"$cni","$block":${type#*:}}|{"disableIPAM":true}
END
	done
	for block in macvlan ipvlan vlan; do
		cat <<END
SpiderMultusConfig|{"cniType":"$block","$block":{"master":[]}}|spec.$block.master|is empty|{"cniType":"$block","$block":{"master":["a"]}}|{"$block":{"mtu":9000}}
SpiderMultusConfig|{"cniType":"$block","$block":{"master":["a","b"]}}|spec.$block.bond|is missing: several masters|{"cniType":"$block","$block":{"master":["a","b"],"bond":{"name":"c","mode":1}}}|{"$block":{"mtu":9000}}
SpiderMultusConfig|{"cniType":"$block","$block":{"master":["a"],"ippools":{"matchMasterSubnet":true}}}|spec.$block.ippools.matchMasterSubnet|is for cniType sriov|{"cniType":"$block","$block":{"master":["a"],"ippools":{"ipv4":["p"]}}}|{"$block":{"ippools":{"ipv4":["p"]}}}
END
	done
	cat <<END
SpiderMultusConfig|{"cniType":"vlan","vlan":{"master":["a"],"vlanMode":"auto","vlanID":7}}|spec.vlan.vlanID|vlanMode auto|{"cniType":"vlan","vlan":{"master":["a"],"vlanMode":"auto"}}|{"vlan":{"mtu":9000}}
SpiderMultusConfig|{"cniType":"sriov","sriov":{}}|spec.sriov.resourceName|is missing: write the resource|{"cniType":"sriov","sriov":{"resourceName":"a/b"}}|{"sriov":{"vlanID":7}}
SpiderMultusConfig|{"cniType":"sriov","sriov":{"resourceName":"a/b","minTxRateMbps":9,"maxTxRateMbps":8}}|spec.sriov.minTxRateMbps|is more than maxTxRateMbps|{"cniType":"sriov","sriov":{"resourceName":"a/b","minTxRateMbps":8,"maxTxRateMbps":8}}|{"sriov":{"vlanID":7}}
SpiderMultusConfig|{"cniType":"ib-sriov","ibsriov":{}}|spec.ibsriov.resourceName|is missing: write the resource|{"cniType":"ib-sriov","ibsriov":{"resourceName":"a/b"}}|{"ibsriov":{"pkey":"7"}}
SpiderMultusConfig|{"cniType":"ipoib","ipoib":{}}|spec.ipoib.master|is missing: name the InfiniBand|{"cniType":"ipoib","ipoib":{"master":"a"}}|{"ipoib":{"ippools":{"ipv4":["p"]}}}
SpiderMultusConfig|{"cniType":"ovs","ovs":{"bridge":"a","trunk":[{"maxID":7}]}}|spec.ovs.trunk[0].minID|is missing beside maxID|{"cniType":"ovs","ovs":{"bridge":"a","trunk":[{"id":7}]}}|{"ovs":{"vlan":7}}
SpiderMultusConfig|{"cniType":"ovs","ovs":{"bridge":"a","trunk":[{"minID":8,"maxID":7}]}}|spec.ovs.trunk[0].minID|swap them|{"cniType":"ovs","ovs":{"bridge":"a","trunk":[{"minID":7,"maxID":7}]}}|{"ovs":{"vlan":7}}
SpiderIPPool|{"subnet":"10.6.0.0"}|spec.subnet|is not a subnet|{"subnet":"fd00::/64"}|{"disable":true}
SpiderIPPool|{"subnet":"10.6.0.0/16","ipVersion":6}|spec.ipVersion|does not fit spec.subnet|{"subnet":"10.6.0.0/16","ipVersion":"IPv4"}|{"disable":true}
SpiderIPPool|{"subnet":"10.6.0.0/16","gateway":"10.7.0.1"}|spec.gateway|is no address of spec.subnet|{"subnet":"10.6.0.7/16","gateway":"10.6.0.1"}|{"disable":true}
SpiderIPPool|{"subnet":"10.6.0.0/16","gateway":"10.6.0.1/16"}|spec.gateway|is no address of spec.subnet|{"subnet":"10.6.0.0/16","gateway":"10.6.0.1"}|{"ips":["10.6.0.9"]}
SpiderReservedIP|{}|spec.ips|is empty|{"ips":["10.6.0.1"]}|{"ipVersion":4}
SpiderReservedIP|{"ips":[]}|spec.ips|is empty|{"ips":["10.6.0.1"]}|{"ipVersion":4}
SriovNetworkNodePolicy|{$policy,$nic,"resourceName":""}|spec.resourceName|is missing: name the resource|{$policy,$nic,"resourceName":"a"}|{"numVfs":2}
SriovNetworkNodePolicy|{$policy,$nic,"resourceName":"a/b"}|spec.resourceName|is refused by kubelets|{$policy,$nic,"resourceName":"a_b-c.d"}|{"numVfs":2}
SriovNetworkNodePolicy|{$policy,$nic,"resourceName":"$(printf 'a%.0s' {1..64})"}|spec.resourceName|is refused by kubelets|{$policy,$nic,"resourceName":"$(printf 'a%.0s' {1..63})"}|{"numVfs":2}
SriovNetworkNodePolicy|{$policy,"nicSelector":{},"resourceName":"a"}|spec.nicSelector|picks no NIC|{$policy,"nicSelector":{"pfNames":["a"]},"resourceName":"a"}|{"numVfs":2}
SriovNetworkNodePolicy|{$policy,"nicSelector":{"vendor":"","pfNames":[]},"resourceName":"a"}|spec.nicSelector|picks no NIC|{$policy,"nicSelector":{"rootDevices":["a"]},"resourceName":"a"}|{"numVfs":2}
SriovNetworkNodePolicy|{$policy,$nic,"resourceName":"a","deviceType":"vfio-pci","isRdma":true}|spec.isRdma|does not go with deviceType vfio-pci|{$policy,$nic,"resourceName":"a","isRdma":true}|{"numVfs":2}
SriovNetworkNodePolicy|{$policy,$nic,"resourceName":"a","eSwitchMode":"switchdev","linkType":"IB"}|spec.eSwitchMode|goes with linkType eth only|{$policy,$nic,"resourceName":"a","eSwitchMode":"switchdev","linkType":"ETH"}|{"numVfs":2}
SriovNetworkNodePolicy|{$policy,$nic,"resourceName":"a","eSwitchMode":"switchdev","deviceType":"vfio-pci","vdpaType":"virtio"}|spec.vdpaType|does not go with deviceType|{$policy,$nic,"resourceName":"a","eSwitchMode":"switchdev","vdpaType":"virtio"}|{"numVfs":2}
SriovNetworkNodePolicy|{$policy,$nic,"resourceName":"a","vdpaType":"virtio"}|spec.vdpaType|needs eSwitchMode switchdev|{$policy,$nic,"resourceName":"a","eSwitchMode":"switchdev"}|{"numVfs":2}
SriovNetworkPoolConfig|{"maxUnavailable":-1}|spec.maxUnavailable|must be a number of nodes|{"maxUnavailable":0}|{"rdmaMode":"shared"}
SriovNetworkPoolConfig|{"rails":["ens1","ens1"]}|spec.rails|must name each NIC once|{"rails":["ens1","0000:1b:00.0"]}|{"rdmaMode":"shared"}
SriovNetworkPoolConfig|{"maxUnavailable":"101%"}|spec.maxUnavailable|must be a number of nodes|{"maxUnavailable":"100%"}|{"rdmaMode":"shared"}
SriovNetworkPoolConfig|{"roce":{"pauseFrames":true,"pfc":[3]}}|spec.roce.pauseFrames|must be false or absent|{"roce":{"pauseFrames":true,"pfc":[]}}|{"rdmaMode":"shared"}
SriovNetworkPoolConfig|{"roce":{"trafficClasses":[{"priorities":[0,3],"strict":true}]}}|spec.roce.trafficClasses|must have each priority|{"roce":{"trafficClasses":[{"priorities":[0,1,2,4,5,6,7],"bandwidth":50},{"priorities":[3],"bandwidth":50}]}}|{"rdmaMode":"shared"}
SriovNetworkPoolConfig|{"roce":{"trafficClasses":[{"priorities":[0,1,2,4,5,6,7],"bandwidth":40},{"priorities":[3],"bandwidth":50}]}}|spec.roce.trafficClasses|must have bandwidths|{"roce":{"trafficClasses":[{"priorities":[0,1,2,3,4,5,6,7],"strict":true}]}}|{"rdmaMode":"shared"}
SriovNetwork|{"resourceName":""}|spec.resourceName|is missing|{"resourceName":"a"}|{"vlan":7}
SriovIBNetwork|{"resourceName":""}|spec.resourceName|is missing|{"resourceName":"a"}|{"linkState":"auto"}
OVSNetwork|{"resourceName":""}|spec.resourceName|is missing|{"resourceName":"a"}|{"mtu":1500}
END
}
