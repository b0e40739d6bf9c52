// SPDX-License-Identifier: Apache-2.0
/* The table of commands: usage, --help, completion and dispatch come from it. */
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/doctor.h"
#include "cli/drain.h"
#include "cli/explain.h"
#include "cli/ipam.h"
#include "cli/ledger.h"
#include "cli/plan.h"
#include "cli/replay.h"
#include "cli/report.h"
#include "cli/report_data.h"
#include "cli/simulate.h"
#include "cli/status.h"
#include "cli/support_dump.h"
#include "cli/test.h"
#include "cli/top.h"
#include "cli/topo.h"
#include "cli/usage.h"
#include "reconcilers/core/kinds.h"

static const char *const no_kinds[] = {NULL};

/* A chain of links about the one object that is named. */
#define EXPLAINS_ONE                                                                               \
	.kinds = explain_chain_kinds, .fields = explain_chain_fields, .args_min = 1, .args_max = 1

const struct cli_command cli_commands[] = {
	{
		.name = "status",
		.arguments = "",
		.summary = "how nodes, policies, networks and pools stand, and what does not stand "
			   "well",
		.help = "Exit status 1 if an object is Degraded, Blocked, needs a boot or is not "
			"Ready, a Node is not, or no operator leads.\n",
		.kinds = status_kinds,
		.optional = KIND_NODE,
		.document = "Status",
		.fields = status_fields,
		.run = status_run,
	},
	{
		.name = "ledger",
		.arguments = "[[NAMESPACE/]POD | NODE | DEVICE | RDMA | GUID | MAC | ADDRESS]",
		.summary = "which pod has which VF, shared device or macvlan interface, GUID, MAC "
			   "and address",
		.help = "DOUBT says where kubelet, NICs and pods disagree, and what to do; exit "
			"status 1 if there is any.\n",
		.kinds = ledger_kinds,
		.optional = KIND_NAD,
		.args_max = 1,
		.document = "Ledger",
		.fields = ledger_fields,
		.completes = KIND_POD,
		.run = ledger_run,
	},
	{
		.name = "ipam show",
		.arguments = "[POOL...]",
		.summary = "pools: how many addresses they have, use and keep back",
		.help = "RESTING counts addresses that were given back lately: they are handed out "
			"last.\n",
		.kinds = ipam_kinds,
		.args_max = SIZE_MAX,
		.document = "Pools",
		.fields = ipam_show_fields,
		.completes = KIND_IP_POOL,
		.run = ipam_show,
	},
	{
		.name = "ipam who",
		.arguments = "ADDRESS | [NAMESPACE/]POD",
		.summary = "who has an address; which addresses a pod has",
		.help = "STATE is InUse, or what `ipam check` finds about the address.\n",
		.kinds = ipam_kinds,
		.args_min = 1,
		.args_max = 1,
		.document = "Addresses",
		.fields = ipam_who_fields,
		.completes = KIND_POD,
		.run = ipam_who,
	},
	{
		.name = "ipam check",
		.arguments = "[--repair]",
		.summary = "do pools, SpiderEndpoints and pods agree?",
		.help = "Prints what does not, with what it means and what mends it. Exit status 1 "
			"if there is anything.\n"
			"\n"
			"With --repair it gives back addresses of pods that are gone, removes "
			"their SpiderEndpoints\n"
			"and puts counts right. A write is refused if the object has changed since "
			"it was read. What\n"
			"is left needs a person; the exit status is about that.\n",
		.kinds = ipam_kinds,
		.takes = 1u << FLAG_REPAIR,
		.document = "AddressFindings",
		.fields = ipam_check_fields,
		.run = ipam_check,
	},
	{
		.name = "ipam explain",
		.arguments = "[NAMESPACE/]POD",
		.summary = "why a pod has these addresses, or none",
		.help = "For each NIC: the pools that are asked, in order, the first rule that "
			"keeps each from serving,\n"
			"and the address that the pod has or would get now. Exit status 1 if it "
			"would get none.\n",
		.kinds = ipam_kinds,
		.args_min = 1,
		.args_max = 1,
		.document = "AddressExplanation",
		.fields = ipam_explain_fields,
		.completes = KIND_POD,
		.run = ipam_explain,
	},
	{
		.name = "explain policy",
		.arguments = "NAMESPACE/POLICY",
		.summary = "where a policy applies, NIC by NIC, and why not elsewhere",
		.help = "-o json has every field with the policy that decided it. Exit status 1 if "
			"the policy is not Ready.\n",
		.kinds = explain_kinds,
		.args_min = 1,
		.args_max = 1,
		.document = "PolicyExplanation",
		.fields = explain_policy_fields,
		.completes = KIND_POLICY,
		.run = explain_policy,
	},
	{
		.name = "explain resource",
		.arguments = "RESOURCE",
		.summary = "from policy to allocatable, node by node, with the first broken link",
		.help = "RESOURCE with its prefix or without. Exit status 1 if a link is broken on "
			"a "
			"node.\n",
		.kinds = explain_kinds,
		.args_min = 1,
		.args_max = 1,
		.document = "ResourceExplanation",
		.fields = explain_resource_fields,
		.run = explain_resource,
	},
	{
		.name = "explain pod",
		.arguments = "[NAMESPACE/]POD",
		.summary = "what a pod asks for, which node can give it, what it got",
		.help = "Networks, devices, node, what the kubelet gave, addresses, interfaces, "
			"with the first link that is\n"
			"broken. Exit status 1 if one is.\n",
		.document = "PodExplanation",
		.completes = KIND_POD,
		.kinds = explain_chain_kinds,
		.fields = explain_pod_fields,
		.args_min = 1,
		.args_max = 1,
		.run = explain_pod,
	},
	{
		.name = "explain node",
		.arguments = "NODE",
		.summary = "what is wanted of a node, what its agent did, what the kubelet offers",
		.help = "Operator, agent, policies, VFs, resources. Exit status 1 if a link is "
			"broken.\n",
		.document = "NodeExplanation",
		.completes = KIND_NODE,
		EXPLAINS_ONE,
		.run = explain_node,
	},
	{
		.name = "explain network",
		.arguments = "[NAMESPACE/]NETWORK",
		.summary = "from a SriovNetwork or NetworkAttachmentDefinition to the pods that "
			   "use it",
		.help = "SriovNetwork, SriovIBNetwork, OVSNetwork, or a "
			"NetworkAttachmentDefinition made by hand. Exit\n"
			"status 1 if a link is broken.\n",
		.document = "NetworkExplanation",
		.completes = KIND_NAD,
		EXPLAINS_ONE,
		.run = explain_network,
	},
	{
		.name = "explain config",
		.arguments = "[NAMESPACE/]CONFIG",
		.summary = "from a SpiderMultusConfig to its definition, resource and pools",
		.help = "Exit status 1 if a link is broken.\n",
		.document = "ConfigExplanation",
		.completes = KIND_MULTUS_CONFIG,
		EXPLAINS_ONE,
		.run = explain_config,
	},
	{
		.name = "explain pool",
		.arguments = "POOL | NAMESPACE/POOLCONFIG",
		.summary = "whom a SpiderIPPool serves and what is left; which nodes a "
			   "SriovNetworkPoolConfig has",
		.help = "Exit status 1 if a link is broken.\n",
		.document = "PoolExplanation",
		.completes = KIND_IP_POOL,
		EXPLAINS_ONE,
		.run = explain_pool,
	},
	{
		.name = "explain reason",
		.arguments = "REASON",
		.summary =
			"what a reason of a condition or an event means, what it affects, what to "
			"do",
		.help = "Needs no cluster.\n",
		.kinds = no_kinds,
		.args_min = 1,
		.args_max = 1,
		.run = explain_reason,
	},
	{
		.name = "top",
		.arguments = "[NODE...]",
		.summary = "what goes over the ports of nodes, and which pods' it is",
		.help = "Every ten seconds, until it is interrupted: rates from the metrics of "
			"agents, as far as\nthe API server reaches them (pods/proxy), beside the "
			"verdicts about links. With -o json|yaml\nand with files once.\n",
		.kinds = top_kinds,
		.document = "Top",
		.fields = top_fields,
		.completes = KIND_NODE,
		.args_max = SIZE_MAX,
		.takes = 1u << FLAG_ONCE,
		.run = top_run,
	},
	{
		.name = "topo",
		.arguments = "NODE",
		.summary = "which GPU is near which NIC of a node, with rails, VFs and pods",
		.help = "The matrix of nvidia-smi topo -m, from what the node's agent reports.\n",
		.kinds = topo_kinds,
		.document = "Topology",
		.fields = topo_fields,
		.completes = KIND_NODE,
		.args_min = 1,
		.args_max = 1,
		.run = topo_run,
	},
	{
		.name = "doctor",
		.arguments = "[NODE...] | --local [shared|exclusive] | --verbs [DEVICE...]",
		.summary = "what keeps RDMA from working, on nodes or on this host",
		.help = "Whether an operator leads. Of nodes: what their agents report, and what "
			"differs among them. --local: "
			"kernel, "
			"modules, RDMA\n"
			"mode, ports, GIDs, firmware, PCI Express, congestion control, GPUs, "
			"limits, "
			"kubelet and CNI of\n"
			"this host; the word is the RDMA mode that it should have. --verbs: opens "
			"each RDMA device that has\n"
			"a file, or those that are named, by libibverbs, registers memory, and "
			"sends a message to itself.\n"
			"Exit status 1 if an error is found.\n",
		.kinds = doctor_kinds,
		.optional = KIND_NAD,
		.document = "DoctorFindings",
		.fields = doctor_fields,
		.completes = KIND_NODE,
		.args_max = SIZE_MAX,
		.takes = 1u << FLAG_LOCAL | 1u << FLAG_VERBS | 1u << FLAG_COMPARE |
			 1u << FLAG_HOST_ROOT,
		.run = doctor_run,
	},
	{
		.name = "drain status",
		.arguments = "",
		.summary =
			"which nodes have pods in the way of a change, and how far each drain is",
		.help = "DEVICES counts what pods have to give back. Exit status 1 if there is "
			"any, or a node waits\n"
			"for a boot.\n",
		.kinds = drain_kinds,
		.document = "Drains",
		.fields = drain_fields,
		.run = drain_status,
	},
	{
		.name = "drain stop",
		.arguments = "NODE...",
		.summary = "keep nodes from being drained or rebooted; one that is drained gets "
			   "its slot "
			   "and devices back",
		.help = "Pods that were asked to end already do. Until `drain retry`.\n",
		.kinds = drain_kinds,
		.completes = KIND_NODE,
		.args_min = 1,
		.args_max = SIZE_MAX,
		.run = drain_stop,
	},
	{
		.name = "drain retry",
		.arguments = "NODE...",
		.summary = "take `drain stop` back; one more reboot where one did not help",
		.help = "The node takes its turn again.\n",
		.kinds = drain_kinds,
		.completes = KIND_NODE,
		.args_min = 1,
		.args_max = SIZE_MAX,
		.run = drain_retry,
	},
	{
		.name = "plan",
		.arguments = "[FILE... | NAMESPACE/POLICY-...]",
		.summary = "what objects would do to cluster and nodes, before they are applied",
		.help = "FILE has objects that are to be applied; NAMESPACE/POLICY- is a policy to "
			"be deleted. Without\n"
			"either: what is under way. -f FILE is the same as FILE, unless it has "
			"nodes: then it is the\n"
			"cluster. For each object: created, changed or unchanged, and what the "
			"operator would do. For\n"
			"each node: which NICs change, which pods have to end first, whether it "
			"has to boot.\n"
			"Exit status 4 if pods would have to end, 5 if nodes would have to boot, 1 "
			"if a policy cannot\n"
			"be applied as written or another object would not become Ready.\n",
		.kinds = plan_kinds,
		.args_max = SIZE_MAX,
		.document = "Plan",
		.fields = plan_fields,
		.run = plan_run,
	},
	{
		.name = "test",
		.arguments = "[NAMESPACE/]NETWORK[,...] [NODE NODE | --mesh [NODE...]]",
		.summary = "RDMA against TCP between pods of two nodes, in networks of yours",
		.help = "Makes a pod on each node, in the namespace of -n, with the networks and "
			"the "
			"RDMA resource that they\n"
			"name; looks at link and MTU, runs ping, rping, ib_read_lat, ib_write_bw, "
			"and "
			"TCP on the same path;\n"
			"removes the pods, also when it is interrupted. Without nodes: the first "
			"two "
			"that have the resource.\n"
			"Exit status 1 if a check fails, 2 if there is no such network or node, 3 "
			"if "
			"pods cannot be made or\n"
			"asked. Rights: create, get, patch and delete of pods, get of "
			"pods/log.\n",
		.kinds = test_kinds,
		.optional = KIND_NODE_STATE,
		.document = "PathTest",
		.fields = test_fields,
		.completes = KIND_NAD,
		.args_min = 1,
		.args_max = SIZE_MAX,
		.takes = 1u << FLAG_MESH | 1u << FLAG_RESOURCE | 1u << FLAG_IMAGE |
			 1u << FLAG_TIMEOUT | 1u << FLAG_CHECK_TIMEOUT | 1u << FLAG_MIN_GBPS |
			 1u << FLAG_MAX_US | 1u << FLAG_PATTERN,
		.run = test_run,
	},
	{
		.name = "report",
		.arguments = "[FILE] | --serve [ADDRESS]",
		.summary =
			"the cluster as one HTML file: nodes, NICs, VFs, pools, policies, findings",
		.help = "On stdout, or into FILE. The page needs nothing else: it can be mailed "
			"and "
			"opened without a network.\n"
			"--serve prints a URL for the browsers of this machine; ADDRESS: "
			"127.0.0.1:PORT or [::1]:PORT (default: 127.0.0.1:0, a free port).\n"
			"--test shows bandwidth and latency of paths, as `orbweaver test -o json` "
			"has measured them.\n",
		.kinds = report_kinds,
		.optional = KIND_NAD,
		.document = "Report",
		.fields = report_fields,
		.args_max = 1,
		.takes = 1u << FLAG_SERVE | 1u << FLAG_TEST,
		.run = report_run,
	},
	{
		.name = "support dump",
		.arguments = "",
		.summary =
			"what somebody else needs to understand a cluster's trouble, without its "
			"secrets",
		.help = "-o names a file that ends in .tar.gz, or a new folder; default: "
			"orbweaver-dump-TIME.tar.gz here.\n"
			"In it: objects that operator, agents and these commands read, versions, "
			"metrics, health and logs of\n"
			"operator and agents. No Secrets, environments, commands or volumes; of "
			"annotations those that\n"
			"somebody here reads. What cannot be read is a line on stderr and in "
			"index.json; exit status 1 then.\n"
			"-f takes a dump wherever it takes files; `replay` decides on one.\n",
		.kinds = no_kinds,
		.to = "FILE.tar.gz|DIR",
		.run = support_dump_run,
	},
	{
		.name = "replay",
		.arguments = "DUMP [CONTROLLER | KEY]",
		.summary = "what the operator would decide on a support dump, and what of it is "
			   "not so "
			   "there",
		.help = "DUMP may be objects as well, as -f takes them; -f puts others in their "
			"place. Decided is at the time of\n"
			"the dump, key by key as after a start of the operator; nothing is carried "
			"out, so each decision is the\n"
			"one that is due. With CONTROLLER or KEY: those alone, also where nothing "
			"would change.\n"
			"Exit status 1 if the operator would write, delete or evict something, or "
			"cannot decide.\n",
		.document = "Replay",
		.fields = replay_fields,
		.reads_dump = true,
		.args_min = 1,
		.args_max = 2,
		.run = replay_run,
	},
	{
		.name = "simulate",
		.arguments = "",
		.summary = "a cluster without machines, for trying and for tests: API server and "
			   "operator on this host",
		.help = "Not a cluster to rely on: all state is in memory, every token may do all, "
			"containers do not run.\n"
			"Loopback only. Prints the line that tells kubectl where it is, and runs "
			"until it is interrupted;\n"
			"--kubeconfig names the file that is written for clients (mode 0600, "
			"removed at the end).\n"
			"Exit status 2 if a port is in use, or another simulation runs in the same "
			"--state.\n",
		.kinds = no_kinds,
		.takes = 1u << FLAG_LISTEN | 1u << FLAG_STATE | 1u << FLAG_API_ONLY |
			 1u << FLAG_NODE,
		.run = simulate_run,
	},
	{
		.name = "simulate break",
		.arguments = "NODE/NIC KIND",
		.summary = "break a NIC of a simulated node",
		.help = "NIC is the name of its interface or its PCI address. KIND:\n"
			"  link-down       its port has no carrier; believed after 20 s\n"
			"  vf-refusal      its firmware makes no VFs\n"
			"  driver-missing  no driver is bound to it\n"
			"  pf-missing      it is not on the bus\n"
			"VFs that go with it do not come back with its repair; the agent makes "
			"them again.\n",
		.kinds = no_kinds,
		.args_min = 2,
		.args_max = 2,
		.takes = 1u << FLAG_STATE,
		.run = simulate_break_run,
	},
	{
		.name = "simulate repair",
		.arguments = "NODE/NIC [KIND]",
		.summary = "repair a NIC of a simulated node",
		.help = "Of this kind of fault; of all without one.\n",
		.kinds = no_kinds,
		.args_min = 1,
		.args_max = 2,
		.takes = 1u << FLAG_STATE,
		.run = simulate_repair_run,
	},
	{
		.name = "completion",
		.arguments = "bash|zsh|fish",
		.summary = "a script that completes commands, flags and names in a shell",
		.help = "bash: source <(orbweaver completion bash). zsh: write it to a file "
			"_orbweaver "
			"on the fpath.\n"
			"fish: write it to ~/.config/fish/completions/orbweaver.fish. kubectl: "
			"link "
			"the program as\n"
			"kubectl_complete-orbweaver, beside kubectl-orbweaver.\n",
		.kinds = no_kinds,
		.completes = "bash zsh fish",
		.args_min = 1,
		.args_max = 1,
		.run = completion_run,
	},
	{
		.name = "schema",
		.arguments = "",
		.summary = "JSON Schema of the documents that -o json and -o yaml print",
		.help = "Members are added in later versions; those that are there keep their "
			"meaning.\n",
		.kinds = no_kinds,
		.run = usage_schema,
	},
	{
		.name = "man",
		.arguments = "",
		.summary = "this program's page for man(1)",
		.help = "make installs it as build/share/man/man1/orbweaver.1.\n",
		.kinds = no_kinds,
		.run = usage_man,
	},
	{0},
};
