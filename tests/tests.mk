# SPDX-License-Identifier: Apache-2.0
# Tests: unit (cmocka), golden, fuzz replay, integration. Included by the top Makefile.

UNIT_SOURCES := $(sort $(shell find tests/unit -name '*_test.c'))
UNIT_TESTS := $(patsubst tests/unit/%.c,$(OUT)/tests/unit/%,$(UNIT_SOURCES))
FUZZ_SOURCES := $(sort $(wildcard tests/fuzz/*_fuzz.c))
FUZZ_TARGETS := $(patsubst tests/fuzz/%_fuzz.c,%,$(FUZZ_SOURCES))

$(OUT)/tests/unit/%: $(OUT)/tests/unit/%.o $(OUT)/tests/support/test_main.o $(ARCHIVES)
	$(LINK) -lcmocka

# Tests in which time passes only where they wait.
VIRTUAL_TIME := loop/loop grpc/server $(addprefix kube/,client informer queue) \
	$(addprefix nodeagent/,pod_networks/addresses pod_networks/leaderless agent/agent agent/gid_reader agent/gpu_finder agent/host_checker agent/link_health pod_networks/settings_reader process/channel kubelet/kubelet_versions kubelet/device_plugins kubelet/claims kubelet/pod_resources)
$(VIRTUAL_TIME:%=$(OUT)/tests/unit/%_test): $(OUT)/tests/fakes/virtual_time.o

# Steps are counted where files change.
STEPS := -Wl,--wrap=renameat,--wrap=unlinkat,--wrap=fsync
$(OUT)/tests/unit/nodeagent/cni/server/crash_test: private EXTRA_LIBS = $(STEPS)
$(OUT)/tests/unit/nodeagent/cni/server/crash_test: $(OUT)/tests/support/steps.o
$(OUT)/tests/unit/nodeagent/cni/server/crash_test $(OUT)/tests/unit/nodeagent/cni/server/cni_server_test $(OUT)/tests/unit/nodeagent/cni/server/job_files_test: $(OUT)/tests/support/cni_stand.o $(OUT)/tests/support/workers_stand.o
$(OUT)/tests/unit/nodeagent/cni/server/node_keeper_test: $(OUT)/tests/support/workers_stand.o

.PHONY: unit-build
unit-build: $(UNIT_TESTS)

# Fuzz targets: real ones with libFuzzer in the fuzz variant, replay of the corpus in every other.
$(OUT)/tests/fuzz/%: $(OUT)/tests/fuzz/%_fuzz.o $(if $(filter fuzz,$(VARIANT)),,$(OUT)/tests/fuzz/replay.o) $(ARCHIVES)
	$(LINK) $(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer)

.PHONY: fuzz-build
fuzz-build: $(FUZZ_TARGETS:%=$(OUT)/tests/fuzz/%)

# What the tests of the operator change and judge a cluster with.
INTEGRATION_PROGRAMS := $(addprefix $(OUT)/tests/integration/,chaos churn history pending pods wants)

# These objects are steps of a chain of pattern rules. Make would remove them, and compile and link all tests again in the next run.
.SECONDARY: $(UNIT_TESTS:%=%.o) $(FUZZ_TARGETS:%=$(OUT)/tests/fuzz/%_fuzz.o) $(INTEGRATION_PROGRAMS:%=%.o)

# Programs that tests start: the operator, with sanitizers.
.PHONY: test-build
test-build: unit-build fuzz-build $(PROGRAMS:%=$(OUT)/%) $(OUT)/tests/node-stand-in $(INTEGRATION_PROGRAMS)

UNIT_SCRIPTS := $(sort $(wildcard tests/unit/*/*_test.sh))
UNIT_RUN = $(UNIT_SCRIPTS) $(UNIT_TESTS) $(foreach t,$(FUZZ_TARGETS),$(OUT)/tests/fuzz/$(t):tests/fuzz/corpus/$(t))
# With LONG=1 only: chaos finds by chance what docs/ipam.md lists as not defended.
INTEGRATION_LONG := tests/integration/operator_chaos_test.sh
# Once more with custom resources on a newer server (hack/cluster up --crds-from); newer_server_test.sh asks what differs there.
NEWER := 0.36
NEWER_TESTS := operator_seeds $(if $(LONG),apply operator_agent operator_webhook)
# Those that take minutes begin first, so that none of them ends alone.
INTEGRATION_FIRST := $(patsubst %,tests/integration/%_test.sh,operator_drain dashboards operator_alerts release ipam_endings kubelet \
	operator_inject operator_removal ipam_churn operator_agent operator_leak cli_report_live operator_outage cli_pathtest ipam)
# Once more on a node on which no CNI program but ours is installed.
INTEGRATION_OWN := tests/integration/guides_test.sh@own
# The load of the core is enough for admission, the thousands of pods are for LONG=1.
INTEGRATION_SMALL := tests/integration/operator_webhook_test.sh
INTEGRATION_RUN = $(INTEGRATION_FIRST) $(INTEGRATION_OWN) $(if $(LONG),,$(INTEGRATION_SMALL:%=%@core)) $(NEWER_TESTS:%=tests/integration/%_test.sh@$(NEWER)) \
	$(filter-out $(INTEGRATION_FIRST) $(if $(LONG),,$(INTEGRATION_LONG) $(INTEGRATION_SMALL)),$(sort $(wildcard tests/integration/*_test.sh)))
JOBS ?= $(shell nproc)
# Unit tests mostly wait for timers; each integration test has a control plane of its own, and waits for half of its time.
UNIT_JOBS ?= 8
INTEGRATION_JOBS ?= $(shell echo $$(($$(nproc) + 2)))
VM_FIRST := $(patsubst %,tests/vm/%_test.sh,attach agent agent_crash maintenance)
VM_RUN = $(VM_FIRST) $(filter-out $(VM_FIRST),$(sort $(wildcard tests/vm/*_test.sh)))
# For `make vm`: ten minutes, on two nodes or three at once, boot after boot, waiting or by chance, and those of the virtual node itself,
# on which all others stand.
VM_LONG := $(patsubst %,tests/vm/%_test.sh,walkthrough multus reboot drain agent_away agent_random attach_crash plan node kubelet exclusive_stage)
VM_JOBS ?= 2
# Seconds for one test. Three emulated nodes that reboot one after the other take 20 minutes on a machine that does more, and in
# check-all one node has other tests beside it.
TEST_TIMEOUT ?= $(if $(filter vm check-all run-all,$(MAKECMDGOALS)),2700,900)
export TEST_TIMEOUT

.PHONY: unit integration fuzz golden-update
unit:
	@hack/deps --check build
	@$(MAKE) --no-print-directory -s -j$(JOBS) VARIANT=asan unit-build fuzz-build
	@$(MAKE) --no-print-directory -s VARIANT=asan run-unit

integration:
	@$(MAKE) --no-print-directory -s -j$(JOBS) VARIANT=opt counted-build
	@$(MAKE) --no-print-directory -s -j$(JOBS) VARIANT=asan test-build
	@$(MAKE) --no-print-directory -s VARIANT=asan run-integration

# Clusters that end leave in this folder what our accounts asked for and what was done for drains; the last tests compare that
# with rights and with what was allowed.
RIGHTS := $(abspath $(BUILD))/rights
RIGHTS_RUN := --jobs 1 --always tests/rights_test.sh tests/drains_test.sh
RECORD = rm -rf $(RIGHTS) && ORBWEAVER_RIGHTS=$(RIGHTS)

.PHONY: run-unit run-integration rights
run-unit:
	@tests/run --jobs $(UNIT_JOBS) $(UNIT_RUN)
run-integration:
	@$(RECORD) BUILD=$(BUILD) VARIANT=$(VARIANT) tests/run --jobs $(INTEGRATION_JOBS) $(INTEGRATION_RUN) $(RIGHTS_RUN)
# Compares once more what the last run left, with rules that were edited since.
rights:
	@ORBWEAVER_RIGHTS=$(RIGHTS) tests/rights_test.sh
	@ORBWEAVER_RIGHTS=$(RIGHTS) tests/drains_test.sh

# make fuzz T=splitter SECONDS=600: new inputs that reach new code are added to the corpus folder of the build.
SECONDS ?= 60
fuzz:
	@hack/deps --check lint
	@$(MAKE) --no-print-directory -s -j$(JOBS) VARIANT=fuzz $(BUILD)/fuzz/tests/fuzz/$(T)
	@mkdir -p $(BUILD)/fuzz/corpus/$(T) $(BUILD)/fuzz/findings
	$(BUILD)/fuzz/tests/fuzz/$(T) -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix=$(BUILD)/fuzz/findings/$(T)- $(BUILD)/fuzz/corpus/$(T) tests/fuzz/corpus/$(T)

golden-update:
	@$(MAKE) --no-print-directory -s VARIANT=asan $(BUILD)/asan/tests/unit/reconcilers/golden_test
	UPDATE=1 $(BUILD)/asan/tests/unit/reconcilers/golden_test
	git status --short --untracked-files=all tests/golden

# ---- programs that tests, demo and benchmarks run: stand-ins (tests/fakes) and load (tests/bench) ---------------------------
PROGRAM_ARCHIVES := $(foreach l,$(RECONCILERS) nodeagent/cni/plan nodeagent/model lib/kube lib/kube/auth lib/loop lib/json lib/base,$(OUT)/$(l).a)

$(OUT)/tests/integration/%: $(OUT)/tests/integration/%.o $(OUT)/tests/support/connection.o $(PROGRAM_ARCHIVES)
	$(LINK)

$(OUT)/tests/integration/chaos $(OUT)/tests/integration/wants: $(OUT)/nodeagent/pod_networks.a
$(OUT)/tests/integration/chaos: $(OUT)/tests/support/chaos_nodes.o
$(OUT)/tests/integration/history $(OUT)/tests/unit/support/address_history_test: $(OUT)/tests/support/address_history.o

$(OUT)/tests/node-stand-in: $(addprefix $(OUT)/tests/,fakes/node_stand_in.o fakes/node_inventory.o fakes/pods_stand_in.o support/connection.o) $(PROGRAM_ARCHIVES)
	$(LINK)

$(OUT)/tests/unit/fakes/node_inventory_test: $(OUT)/tests/fakes/node_inventory.o

$(OUT)/tests/bench-load: $(addprefix $(OUT)/tests/,bench/load.o support/connection.o) $(PROGRAM_ARCHIVES)
	$(LINK)

$(OUT)/tests/bench-admit: $(OUT)/tests/bench/admit.o $(OUT)/lib/base.a
	$(LINK)

$(OUT)/tests/bench-watches: $(addprefix $(OUT)/tests/,bench/watches.o support/connection.o) $(PROGRAM_ARCHIVES)
	$(LINK)

$(OUT)/tests/bench-cni: $(OUT)/tests/bench/cni.o $(OUT)/lib/json.a $(OUT)/lib/base.a
	$(LINK)

# `make bench` prints the budgets beside what is measured here. NODES=200,1000,5000,10000 for growth, BENCH="--pfs 8 --vfs 16"
# for more, CNI=--vf for a VF on a virtual node: tests/bench/README.md.
NODES ?= 200,1000
BENCH ?=
CNI ?=
.PHONY: bench profile
bench: bench-build
	@tests/bench/run --nodes $(NODES) --build $(BUILD) $(BENCH)
	@+$(MAKE) --no-print-directory -s VARIANT=opt $(addprefix $(BUILD)/opt/tests/,bench-agent bench-allocate bench-cni bench-size counters-node) \
		$(BUILD)/bin/orbweaver-agent $(BUILD)/bin/orbweaver-cni
	@tests/bench/agent --build $(BUILD)
	@tests/bench/cni --build $(BUILD) $(CNI)
	@tests/bench/counters --build $(BUILD)
	@$(BUILD)/opt/tests/bench-allocate
	@$(BUILD)/opt/tests/bench-size --nodes 1250 --pfs 8 --pods 1250 --pools 10 --configs 10 --steps 0
	@tests/bench/watch_storm --build $(BUILD)
# Where the operator's CPU goes while it brings NodeStates and networks: build/profile.
profile: bench-build
	@hack/deps profile
	@tests/bench/run --nodes 1000 --pools 0 --others 0 --admission 0 --addresses 0 --idle 0 --build $(BUILD) --profile $(BUILD)/profile
	@cat $(BUILD)/profile
.PHONY: bench-build
bench-build:
	@hack/deps build cluster
	@hack/curl-build || test $$? = 77
	@+$(MAKE) --no-print-directory -s VARIANT=opt $(BUILD)/bin/orbweaver-operator \
		$(addprefix $(BUILD)/opt/tests/,node-stand-in bench-load bench-admit bench-watches integration/pods integration/wants)
# ---- end of programs that tests, demo and benchmarks run ------------------------------------------------------------------

# ---- programs of tests/support, and what unit and integration tests share -------------------------------------------------
$(OUT)/tests/unit/reconcilers/sriov/sriov_conformance_test: $(OUT)/tests/support/recording.o
$(foreach t,admission/pods admission/admission ipam/ipam spider/spider sriov/sriov,$(OUT)/tests/unit/reconcilers/$(t)_conformance_test) \
	$(OUT)/tests/unit/nodeagent/cni/plan/multus_conformance_test: $(OUT)/tests/support/conformance.o
$(OUT)/tests/unit/reconcilers/ipam/ipam_conformance_test: $(OUT)/tests/support/ipam_recording.o
test-build: $(OUT)/tests/relay

$(OUT)/tests/relay: $(OUT)/tests/support/relay.o $(OUT)/lib/base.a
	$(LINK)

test-build: $(OUT)/tests/flood
$(OUT)/tests/flood: $(OUT)/tests/support/flood.o $(OUT)/lib/base.a
	$(LINK)

# What callgrind counts is the code as it ships, without sanitizers.
ONE_KEY_ARCHIVES := $(foreach l,operator operator/controllers operator/cache operator/writer operator/server $(RECONCILERS) nodeagent/cni/plan nodeagent/model lib/http lib/kube lib/kube/auth lib/loop lib/json lib/base,$(OUT)/$(l).a)
$(OUT)/tests/bench-size: private EXTRA_LIBS += $(MALLOC.$(VARIANT)) $(foreach f,alloc zalloc calloc realloc dup,-Wl,--wrap=mem_$f)
$(OUT)/tests/bench-size: $(addprefix $(OUT)/tests/,bench/size.o fakes/node_inventory.o) $(ONE_KEY_ARCHIVES)
	$(LINK)
$(OUT)/tests/one-key: $(addprefix $(OUT)/tests/,support/one_key.o fakes/node_inventory.o) $(ONE_KEY_ARCHIVES)
	$(LINK)
.PHONY: counted-build
counted-build: $(OUT)/tests/one-key
# ---- end of programs of tests/support -----------------------------------------------------------------------------------------

# ---- tests of lib/kube: a scripted server for the unit tests, and what runs on a real API server ---------------------------
SCRIPTED := $(addprefix $(OUT)/tests/fakes/,http_script.o scripted.o)
$(foreach t,client informer lease recorder,$(OUT)/tests/unit/kube/$(t)_test): $(SCRIPTED)
$(foreach t,pod_networks/addresses pod_networks/leaderless agent/gpu_finder agent/pod_events agent/pod_owners pod_networks/foresee pod_networks/settings_reader,$(OUT)/tests/unit/nodeagent/$(t)_test): $(SCRIPTED)
$(foreach t,writer/applier_run controllers/controllers controllers/ipam_book server/metrics_access cache/mirror cache/live_reads nad_definition cache/pod_demand server/webhook,$(OUT)/tests/unit/operator/$(t)_test): $(SCRIPTED)
$(OUT)/tests/integration/kube_test: private EXTRA_LIBS += -lcmocka
test-build: $(OUT)/tests/integration/kube_test
# ---- end of tests of lib/kube -----------------------------------------------------------------------------------------------

# ---- tests on virtual nodes (hack/node): a real kernel, SR-IOV and RDMA in QEMU; minutes, needs root ------------------------
.PHONY: vm vm-build
# Programs that they run, in a node or beside it: blocks that have some add them.
vm-build: $(OUT)/orbweaver $(OUT)/orbweaver-agent $(OUT)/orbweaver-cni $(OUT)/orbweaver-operator $(OUT)/tests/node-stand-in
vm:
	@hack/deps build cluster images node
	@hack/k8s-build
	@hack/k8s-build kubelet
	@hack/node-build
	@hack/node-build --exclusive || test $$? = 77
	@$(MAKE) --no-print-directory -s -j$(JOBS) VARIANT=asan vm-build
	@$(MAKE) --no-print-directory -s -j$(JOBS) images
	@BUILD=$(BUILD) hack/images tools
	@$(RECORD) BUILD=$(BUILD) VARIANT=asan tests/run --jobs $(VM_JOBS) $(VM_RUN) $(RIGHTS_RUN)
# ---- end of tests on virtual nodes ------------------------------------------------------------------------------------------

# ---- tests of nodeagent/host: a host made of files, and the library from a shell for tests on virtual nodes ---------------------
$(addprefix $(OUT)/tests/unit/nodeagent/,worker/worker_test.o netlink/netlink_test.o cni/execute/ib_sriov_run_test.o cni/execute/plugins_test.o cni/execute/coordinator_detect_test.o cni/execute/marks_test.o cni/execute/messages_test.o cni/execute/observe_host_test.o): private PKG_CFLAGS = $(shell $(PKG_CONFIG) --cflags libnl-3.0)
$(OUT)/tests/unit/nodeagent/netlink/netlink_test: private EXTRA_LIBS = -Wl,--wrap=nl_recv
$(OUT)/tests/unit/nodeagent/cni/execute/ib_sriov_run_test: private EXTRA_LIBS = -Wl,--wrap=ib_sriov_guid_of
$(OUT)/tests/unit/nodeagent/cni/execute/plugins_test: private EXTRA_LIBS = -Wl,--wrap=netlink_send

$(OUT)/tests/host-tool: $(addprefix $(OUT)/,tests/support/host_tool.o nodeagent/host.a nodeagent/netlink.a nodeagent/worker.a nodeagent/devices.a nodeagent/model.a lib/json.a lib/base.a)
	$(LINK)
vm-build: $(OUT)/tests/host-tool
# ---- end of tests of nodeagent/host -----------------------------------------------------------------------------------------

# ---- tests of nodeagent/process: on the host made of files, and with system calls that fail ----------------------------------
$(foreach t,client calls,$(OUT)/tests/unit/nodeagent/process/$(t)_test): $(OUT)/tests/support/workers_stand.o
$(OUT)/tests/unit/nodeagent/agent/counter_collector_test: $(OUT)/tests/support/workers_stand.o

HOSTD_CALLS := socketpair fork poll send recv sendmsg recvmsg read write open openat dup2 dup3 fcntl signalfd prctl \
	sigprocmask waitpid waitid mkdirat fsync renameat
$(OUT)/tests/unit/nodeagent/process/calls_test: private EXTRA_LIBS += $(HOSTD_CALLS:%=-Wl,--wrap=%)
# ---- end of tests of nodeagent/process ---------------------------------------------------------------------------------------

# ---- tests of nodeagent/kubelet: a scripted kubelet, and device plugins from a file for the real one -------------------------
KUBELET_TESTS := $(sort $(wildcard tests/unit/nodeagent/kubelet/*_test.c tests/unit/nodeagent/process/*_test.c tests/unit/nodeagent/worker/allocated_devices_test.c tests/unit/nodeagent/agent/gpu_finder_test.c \
	$(wildcard tests/fakes/kubelet*.c) tests/fakes/dra_kubelet.c tests/support/dra_kubelet_tool.c tests/support/kubelet_tool.c tests/support/kubelet_play.c tests/support/counters_node.c tests/fuzz/pod_resources_fuzz.c tests/bench/allocate.c \
	tests/bench/agent.c))
$(KUBELET_TESTS:%.c=$(OUT)/%.o): | $(GRPC_HEADERS)
$(foreach t,kubelet/device_plugins kubelet/kubeletd,$(OUT)/tests/unit/nodeagent/$(t)_test): $(OUT)/tests/fakes/kubelet.o

$(OUT)/tests/unit/nodeagent/kubelet/claims_test: $(OUT)/tests/fakes/dra_kubelet.o

FAKE_KUBELETS := $(patsubst %.c,$(OUT)/%.o,$(wildcard tests/fakes/kubelet*.c))
$(addprefix $(OUT)/tests/unit/nodeagent/,kubelet/kubelet_versions_test agent/gpu_finder_test): $(FAKE_KUBELETS)

KUBELET_ARCHIVES := $(foreach l,nodeagent/agent nodeagent/process nodeagent/worker nodeagent/host nodeagent/netlink nodeagent/model nodeagent/kubelet nodeagent/devices lib/grpc lib/loop lib/json lib/base,$(OUT)/$(l).a)
$(OUT)/tests/kubelet-tool: $(OUT)/tests/support/kubelet_tool.o $(KUBELET_ARCHIVES)
	$(LINK)
$(OUT)/tests/bench-allocate: $(OUT)/tests/bench/allocate.o $(KUBELET_ARCHIVES)
	$(LINK)
# The agent as it ships, on a host made of files.
$(OUT)/tests/bench-agent: private EXTRA_LIBS += -Wl,--wrap=main -Wl,--wrap=host_open
$(OUT)/tests/bench-agent: $(addprefix $(OUT)/,nodeagent/main.o tests/bench/agent.o tests/fakes/kubelet.o tests/fakes/shared_kernel.o) $(ARCHIVES)
	$(LINK)
# The same with devices that have counted, and pods that have VFs.
$(OUT)/tests/counters-node: private EXTRA_LIBS += -Wl,--wrap=main -Wl,--wrap=host_open -lm
$(OUT)/tests/counters-node: $(addprefix $(OUT)/,nodeagent/main.o tests/support/counters_node.o tests/fakes/kubelet.o tests/fakes/shared_kernel.o) $(ARCHIVES)
	$(LINK)
test-build: $(OUT)/tests/kubelet-tool $(OUT)/tests/counters-node
# What a kubelet asks a driver of claims.
$(OUT)/tests/dra-kubelet: $(addprefix $(OUT)/tests/,support/dra_kubelet_tool.o fakes/dra_kubelet.o) $(KUBELET_ARCHIVES)
	$(LINK)
test-build: $(OUT)/tests/dra-kubelet
# Pods that come and go on a virtual node, by chance or as they are told.
$(OUT)/tests/kubelet-play: $(OUT)/tests/support/kubelet_play.o $(FAKE_KUBELETS) $(KUBELET_ARCHIVES)
	$(LINK)
vm-build test-build: $(OUT)/tests/kubelet-play
# ---- end of tests of nodeagent/kubelet ---------------------------------------------------------------------------------------

# ---- tests of nodeagent/cni/execute: recorded CNI calls in real namespaces ---------------------------------------------------
NETNS_ARCHIVES := $(foreach l,nodeagent/cni/execute nodeagent/cni/plan reconcilers/core nodeagent/host nodeagent/netlink nodeagent/worker nodeagent/devices nodeagent/model lib/json lib/base,$(OUT)/$(l).a)
$(OUT)/tests/unit/cli/simulate/host/host_tree_test: $(OUT)/tests/fakes/shared_kernel.o
$(addprefix $(OUT)/tests/,fakes/shared_kernel.o support/coordinator_replay.o fuzz/netlink_fuzz.o): private PKG_CFLAGS = $(shell $(PKG_CONFIG) --cflags libnl-3.0)
$(OUT)/tests/coordinator-replay: $(addprefix $(OUT)/tests/support/,coordinator_replay.o conformance.o) $(NETNS_ARCHIVES)
	$(LINK)
test-build: $(OUT)/tests/coordinator-replay
# A call from a shell; it can be killed before each message that goes to the kernel.
$(OUT)/tests/attach-tool: private EXTRA_LIBS += -Wl,--wrap=sendto
$(OUT)/tests/attach-tool: $(OUT)/tests/support/attach_tool.o $(OUT)/nodeagent/cni/server.a $(NETNS_ARCHIVES)
	$(LINK)
vm-build test-build: $(OUT)/tests/attach-tool
# The agent as it ships, which stops at a step that a test names.
$(OUT)/tests/crash-agent: private EXTRA_LIBS += $(STEPS) -Wl,--wrap=sendto
$(OUT)/tests/crash-agent: $(addprefix $(OUT)/,nodeagent/main.o tests/support/crash_agent.o tests/support/steps.o) $(ARCHIVES)
	$(LINK)
vm-build: $(OUT)/tests/crash-agent
# A pod with eight rails, whose workers are killed at steps.
$(OUT)/tests/integration/rails_crash: private EXTRA_LIBS += -lcmocka $(STEPS) -Wl,--wrap=sendto
$(OUT)/tests/integration/rails_crash: $(addprefix $(OUT)/tests/support/,cni_stand.o steps.o workers_stand.o) $(ARCHIVES)
test-build: $(OUT)/tests/integration/rails_crash
# ---- end of tests of nodeagent/cni/execute -----------------------------------------------------------------------------------

include tests/check.mk
