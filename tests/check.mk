# SPDX-License-Identifier: Apache-2.0
# make check, check-all and check-changed: which tests run when, and what is built for them. Included by tests.mk.

# The core: each promise once. What each of these alone shows: the table in tests/README.md. The longest come first.
CORE := ipam crds operator_repair cni agent operator_replicas operator_seeds meta cli dra coordinator attach
# With STAGE=core: the kubelet's first half, which needs neither controllers nor a scheduler, and a lighter load of admission.
CORE_SMALL := kubelet operator_webhook
CORE_RUN := $(CORE_SMALL:%=tests/integration/%_test.sh@core) $(CORE:%=tests/integration/%_test.sh)
CORE_PROGRAMS := kube-apiserver kubelet kubectl

# What passed in `make check`, by the sources that it was about: all files that git tracks or would. AFTER_CHECK=1 lets check-all
# count those tests without another run.
PASSED := $(BUILD)/passed
TREE = $(shell { git ls-files -z --cached --others --exclude-standard 2>/dev/null || find . -path './$(BUILD)' -prune -o -type f -print0; } | \
	xargs -0r sha1sum 2>/dev/null | sha1sum | cut -c 1-16)

.PHONY: check check-build check-programs check-kubernetes check-lint run-check
# In steps, so that what is missing is installed before make looks for it.
check:
	@echo "== installing what is missing"
	@hack/deps build cluster kubelet
	@echo "== compiling, with sanitizers, and Kubernetes unless it is in the cache; looking at layers, format, Markdown and scripts"
	+@$(MAKE) --no-print-directory -s -j$(JOBS) VARIANT=asan check-build
	@echo "== testing: without a cluster, then on a real API server, a kubelet and network namespaces"
	+@$(MAKE) --no-print-directory -s VARIANT=asan run-check

# Side by side: a download waits for the network while compilers work.
check-build: check-kubernetes check-lint check-programs
check-lint: layers markdown spdx format-check shellcheck
check-kubernetes:
	@hack/k8s-build $(CORE_PROGRAMS)
check-programs:
	+@hack/alive "compiling with sanitizers" $(BUILD)/asan $(MAKE) --no-print-directory -s VARIANT=asan test-build

run-check:
	@rm -rf $(PASSED) && mkdir -p $(PASSED)
	@$(RECORD) TEST_RECORD=$(PASSED)/$(TREE) BUILD=$(BUILD) VARIANT=$(VARIANT) tests/run --jobs $(UNIT_JOBS) $(UNIT_RUN) \
		--jobs $(INTEGRATION_JOBS) --again $(CORE_RUN) $(RIGHTS_RUN)

# ---- everything -------------------------------------------------------------------------------------------------------------
.PHONY: check-all check-all-parts check-all-programs run-all
check-all:
	@echo "== installing what is missing"
	@hack/deps build lint cluster kubelet cross emulator release grpc images chart browser monitoring node
	@echo "== building libcurl, Kubernetes and what virtual nodes are made of, unless they are in the cache"
	+@$(MAKE) --no-print-directory -s -j$(JOBS) check-all-parts
	@echo "== compiling for release, with clang, and with sanitizers"
	+@hack/alive "compiling" $(BUILD) $(MAKE) --no-print-directory -s -j$(JOBS) check-all-programs
	@echo "== packing images"
	@BUILD=$(BUILD) hack/images operator agent tools
	@echo "== testing; those on virtual nodes take minutes each"
	+@$(MAKE) --no-print-directory -s VARIANT=asan run-all

check-all-parts: check-all-libcurl check-all-kubernetes check-all-nodes $(if $(AFTER_CHECK),,check-lint)
.PHONY: check-all-libcurl check-all-kubernetes check-all-nodes
check-all-libcurl:
	@hack/curl-build || test $$? = 77
check-all-kubernetes:
	@hack/k8s-build
	@hack/k8s-build kubelet
	@hack/k8s-build apiextensions || test $$? = 77
check-all-nodes:
	@hack/node-build
	@hack/node-build --exclusive || test $$? = 77

check-all-programs: $(addprefix check-all-,opt clang asan arm64)
check-all-opt: GOALS := programs counted-build
check-all-clang: GOALS := libraries
check-all-asan: GOALS := test-build vm-build
.PHONY: check-all-opt check-all-clang check-all-asan check-all-arm64
check-all-opt check-all-clang check-all-asan: check-all-%:
	+@$(MAKE) --no-print-directory -s VARIANT=$* $(GOALS)
# For the other architecture: what is published, and the unit tests that an emulator runs.
check-all-arm64: check-all-opt
	+@$(MAKE) --no-print-directory -s release-build
	+@$(MAKE) --no-print-directory -s arm64-test

# What clusters recorded for the tests of rights stays with the results.
run-all:
	@[[ -n "$(AFTER_CHECK)" && -s $(PASSED)/$(TREE) ]] || rm -rf $(PASSED) $(RIGHTS)
	@TEST_PASSED=$(PASSED)/$(TREE) ORBWEAVER_RIGHTS=$(RIGHTS) RIGHTS_OF=all \
		BUILD=$(BUILD) VARIANT=$(VARIANT) tests/run --jobs $(UNIT_JOBS) $(UNIT_RUN) \
		--beside $(VM_JOBS) --again $(filter-out $(VM_LONG),$(VM_RUN)) \
		--jobs $(INTEGRATION_JOBS) --again $(INTEGRATION_RUN) $(RIGHTS_RUN)

# ---- what a change can affect -----------------------------------------------------------------------------------------------
# Files that differ from BASE, and new ones.
BASE ?= HEAD
.PHONY: check-changed
check-changed:
	@hack/deps --check build
	+@MAKE='$(MAKE) --no-print-directory -s -j$(JOBS)' BUILD=$(BUILD) hack/check-changed '$(BASE)' $(foreach l,$(LIBRARIES),'$(l):$(uses.$(l))')
