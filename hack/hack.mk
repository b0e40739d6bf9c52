# SPDX-License-Identifier: Apache-2.0
# Targets for people: images and the demo on virtual nodes. Included by the top Makefile.

IMAGE_PROGRAMS := $(addprefix $(BUILD)/bin/orbweaver-,operator agent cni)

# Architectures of images and releases, `make images ARCH="amd64 arm64"`: this machine's natively, others by a cross compiler.
HOST_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,amd64,$(shell uname -m)))
# Not from the environment, where kernel developers have one of another meaning.
ifeq ($(filter command,$(origin ARCH)),)
ARCH := $(HOST_ARCH)
endif
FOREIGN_ARCH = $(filter-out $(HOST_ARCH),$(ARCH))
CHECK_ARCH = @$(foreach a,$(filter-out amd64 arm64,$(ARCH)),$(error ARCH: "$(a)" is not an architecture of ours; there are amd64 and arm64)):

# hack/deps first: on a fresh machine the compiler comes with it. So building is a make of its own.
.PHONY: images
images:
	$(CHECK_ARCH)
	hack/deps build images $(if $(FOREIGN_ARCH),cross)
	hack/curl-build || test $$? = 77
	+$(MAKE) --no-print-directory VARIANT=opt $(IMAGE_PROGRAMS)
	+$(if $(FOREIGN_ARCH),$(MAKE) --no-print-directory $(FOREIGN_ARCH:%=cross-%))
	BUILD=$(BUILD) ARCH='$(ARCH)' hack/images operator agent manifests

# What ships, for another architecture than this machine's.
CROSS_PROGRAMS := $(PROGRAMS)
CROSS_GOALS = $(addprefix $(BUILD)/$*/,$(CROSS_PROGRAMS))
cross-%:
	hack/deps build cross
	+root=$$(hack/sysroot $*) && { hack/curl-build "$$root" || test $$? = 77; } && \
		SYSROOT=$$root PKG_CONFIG_SYSROOT_DIR=$$root \
		PKG_CONFIG_LIBDIR=$$(echo $$root/usr/lib/*-linux-gnu/pkgconfig):$$root/usr/share/pkgconfig \
		$(MAKE) --no-print-directory VARIANT=$* $(CROSS_GOALS)

# Operator, agent, CNI plugin and command line for arm64 (Grace, BlueField).
.PHONY: arm64 arm64-test
arm64: cross-arm64

# Unit tests of the code that parses and decides. Without those that need more than the emulator has: it knows no openat2 (a root,
# and the simulated host in it), and gives a program one descriptor too many where a message is cut (packet).
PURE := base json reconcilers $(addprefix nodeagent/,cni/plugin devices cni/plan host_plan)
NOT_EMULATED := $(patsubst %,tests/unit/%_test,base/netns_life base/packet base/root nodeagent/devices/affinity \
	$(addprefix nodeagent/host_plan/,planner_boots planner_host vendor))
PURE_TESTS := $(filter-out $(NOT_EMULATED),$(patsubst %.c,%,$(filter $(PURE:%=tests/unit/%/%),$(UNIT_SOURCES))))
arm64-test:
	hack/deps build cross emulator
	@+$(MAKE) --no-print-directory -s cross-arm64 CROSS_PROGRAMS='$(PURE_TESTS)'
	@TEST_LOGS=$(BUILD)/logs-arm64 EMULATOR="qemu-aarch64 -L $$(hack/sysroot arm64)" tests/run --jobs $(JOBS) $(PURE_TESTS:%=$(BUILD)/arm64/%)

# What is published, in build/release: both architectures unless ARCH names others. RELEASE_REGISTRY and RELEASE_URL: hack/release --help.
.PHONY: release release-build
release release-build: ARCH := amd64 arm64
release: release-build
	IMAGES=$(BUILD)/release-images BUILD=$(BUILD) ARCH='$(ARCH)' hack/images operator agent tools
	BUILD=$(BUILD) ARCH='$(ARCH)' hack/release
release-build:
	$(CHECK_ARCH)
	hack/deps build images release $(if $(FOREIGN_ARCH),cross)
	hack/curl-build || test $$? = 77
	+$(MAKE) --no-print-directory VARIANT=opt $(IMAGE_PROGRAMS) $(BUILD)/bin/orbweaver $(BUILD)/opt/portable/orbweaver
	+$(if $(FOREIGN_ARCH),$(MAKE) --no-print-directory $(FOREIGN_ARCH:%=cross-%) CROSS_PROGRAMS='$(PROGRAMS) portable/orbweaver')

# What the cluster needs besides our programs. Side by side: one waits for the network while another compiles.
.PHONY: cluster-parts libcurl kubernetes virtual-nodes
cluster-parts: libcurl kubernetes virtual-nodes
libcurl:
	@hack/curl-build || test $$? = 77
kubernetes:
	@hack/k8s-build
virtual-nodes:
	@hack/node-build --exclusive || test $$? = 77

.PHONY: demo-cluster demo-cluster-up demo-cluster-shell demo-cluster-down
demo-cluster demo-cluster-up:
	hack/deps build cluster images node
	+@$(MAKE) --no-print-directory -j3 cluster-parts
	+$(MAKE) --no-print-directory -j$(shell nproc) VARIANT=opt $(IMAGE_PROGRAMS) $(BUILD)/bin/orbweaver
	BUILD=$(BUILD) hack/images operator agent tools
	BUILD=$(BUILD) hack/demo-cluster $(if $(filter demo-cluster-up,$@),up,run)
demo-cluster-shell demo-cluster-down:
	@BUILD=$(BUILD) hack/demo-cluster $(patsubst demo-cluster-%,%,$@)

# The demo on a simulated cluster: no cluster, no virtual machine, any user.
.PHONY: demo demo-up demo-down
demo demo-up:
	@hack/deps demo
	@echo "== building build/bin/orbweaver: some 400 C files when there is nothing yet"
	+@hack/alive "compiling" $(BUILD)/opt $(MAKE) --no-print-directory -s -j$(shell nproc) VARIANT=opt $(BUILD)/bin/orbweaver
	@BUILD=$(BUILD) hack/demo $(if $(filter demo-up,$@),up,run)
demo-down:
	@BUILD=$(BUILD) hack/demo down
