# SPDX-License-Identifier: Apache-2.0
# Orbweaver. `make help` lists the targets; every folder with C code has a module.mk.
#
# Variants: opt (what ships), asan (gcc, address+undefined sanitizers: what the tests run), clang (second compiler),
# fuzz (clang with libFuzzer), amd64 and arm64 (what ships, by Debian's cross compiler). Objects live in build/<variant>/;
# build/release is what `make release` publishes.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

BUILD ?= build
VARIANT ?= opt
# The name that opt had while nothing was published.
ifeq ($(VARIANT),release)
override VARIANT := opt
endif
OUT := $(BUILD)/$(VARIANT)
# That of programs, manual page, images, chart and manifests.
VERSION := $(shell hack/version)

CC.opt := gcc
CC.asan := gcc
CC.clang := clang
CC.fuzz := clang
CC.amd64 := x86_64-linux-gnu-gcc --sysroot=$(SYSROOT)
CC.arm64 := aarch64-linux-gnu-gcc --sysroot=$(SYSROOT)
CC := $(CC.$(VARIANT))

WARNINGS := -Wall -Wextra -Wno-unused-parameter -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
	-Wvla -Wundef -Werror
# A char has a sign on arm64, too: what tests run on amd64 is what runs there.
SIGNED_CHAR := $(if $(filter arm64,$(VARIANT))$(filter aarch64,$(shell uname -m)),-fsigned-char)
COMMON := -std=gnu17 $(SIGNED_CHAR) $(WARNINGS) -D_GNU_SOURCE -DORBWEAVER_VERSION='"$(VERSION)"' -I. -I$(OUT)/gen -fno-strict-aliasing \
	-include lib/base/banned.h
CFLAGS.opt := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE -ffunction-sections -fdata-sections
CFLAGS.amd64 := $(CFLAGS.opt)
CFLAGS.arm64 := $(CFLAGS.opt)
# -Og compiles in half of the time of -O1, but sees uninitialized variables where there are none; opt and clang look for those.
CFLAGS.asan := -Og -g1 -Wno-maybe-uninitialized -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# Its warnings do not depend on what it optimizes, and nothing runs what it compiles.
CFLAGS.clang := -O0
CFLAGS.fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
LDFLAGS.opt := -pie -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro,-z,now
LDFLAGS.amd64 := $(LDFLAGS.opt)
LDFLAGS.arm64 := $(LDFLAGS.opt)
LDFLAGS.asan := -fsanitize=address,undefined
LDFLAGS.clang :=
LDFLAGS.fuzz := -fsanitize=address,undefined
# In place of the C library's malloc, for programs that take JSON apart all day; sanitizers have one of their own.
MALLOC.opt := -lmimalloc
MALLOC.amd64 := $(MALLOC.opt)
MALLOC.arm64 := $(MALLOC.opt)

# libcurl with HTTP and TLS alone, where hack/curl-build has made it; else Debian's, which does more and weighs more.
CURL := $(shell hack/curl-build --dir $(if $(filter amd64 arm64,$(VARIANT)),$(or $(SYSROOT),/nonexistent)))
CURL_ARCHIVE := $(CURL:%=%/lib/libcurl.a)
PKG_CONFIG := $(if $(CURL),PKG_CONFIG_PATH=$(CURL)/lib/pkgconfig) pkg-config

# What a recipe does, in one line; `make V=1` shows the commands.
quiet := $(findstring s,$(filter-out -%,$(firstword $(MAKEFLAGS))))
Q := $(if $(V),,@)
say = $(if $(V)$(quiet),,@printf '  %-7s %s\n' '$(1)' '$(2)')

# Says what is missing, and which command installs it, before the compiler does.
.PHONY: all
all:
	@hack/deps --check programs
	@+$(MAKE) --no-print-directory programs man

# ---- modules: each module.mk says what a folder uses -------------------------------------------------------------------
#
#	$(eval $(call library,lib/kube,lib/base lib/json lib/loop,libcurl))
#	               folder,   folders it may include,         pkg-config packages
#
# Every .c file of the folder belongs to it. `make layers` checks that includes go only where the second argument allows.

LIBRARIES :=
STATIC_LIBS :=
define library
LIBRARIES += $(1)
uses.$(1) := $(2)
packages.$(1) := $(3)
objects.$(1) := $$(patsubst %.c,$$(OUT)/%.o,$$(sort $$(filter-out %/main.c,$$(wildcard $(1)/*.c))))
$$(OUT)/$(1).a: $$(objects.$(1))
$$(objects.$(1)): private PKG_CFLAGS = $$(if $(3),$$(shell $$(PKG_CONFIG) --cflags $(3)))
endef

# $(call program,NAME,main source,libraries in link order)
PROGRAMS :=
define program
PROGRAMS += $(1)
$$(OUT)/$(1): $$(OUT)/$(patsubst %.c,%.o,$(2)) $$(foreach l,$(3),$$(OUT)/$$(l).a)
	$$(LINK)
# Links anew when hack/curl-build has been here.
$$(OUT)/$(1): $$(CURL_ARCHIVE)
endef

# What decides, as one word for programs that link all of it; in link order.
RECONCILERS := $(addprefix reconcilers/,admission maintenance spider ipam/allocate ipam sriov core)

include $(sort $(wildcard $(addsuffix module.mk,lib/*/ lib/*/*/ reconcilers/*/ reconcilers/*/*/ operator/ operator/*/ cli/ cli/*/ cli/*/*/ nodeagent/ nodeagent/*/ nodeagent/*/*/)))

ALL_PACKAGES := $(sort $(foreach l,$(LIBRARIES),$(packages.$(l))))
# First those of which a program takes only what it calls.
LIBS = $(STATIC_LIBS) $(shell $(PKG_CONFIG) --libs $(ALL_PACKAGES))
LINK = $(Q)$(if $(V)$(quiet),,printf '  %-7s %s\n' LD '$@';) $(CC) $(CFLAGS.$(VARIANT)) $(LDFLAGS.$(VARIANT)) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
	$(LIBS) $(EXTRA_LIBS)
ARCHIVES = $(foreach l,$(LIBRARIES),$(OUT)/$(l).a)

$(OUT)/%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(COMMON) $(CFLAGS.$(VARIANT)) $(PKG_CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)

# What ships says the version that it was made from, so that a new one compiles those files anew. Not in the variants for
# tests: each commit would link all of them.
ifneq ($(filter opt amd64 arm64,$(VARIANT)),)
$(patsubst %.c,$(OUT)/%.o,$(shell grep -rl --include='*.c' ORBWEAVER_VERSION lib operator nodeagent cli)): $(OUT)/version
.PHONY: look-at-version
$(OUT)/version: look-at-version
	@mkdir -p $(@D)
	@echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' >$@
endif

.PHONY: programs libraries
programs: $(PROGRAMS:%=$(BUILD)/bin/%)
libraries: $(ARCHIVES)

# What ships, under one name whatever the variant of this run.
ifeq ($(VARIANT),opt)
$(BUILD)/bin/%: $(BUILD)/opt/%
	@mkdir -p $(@D)
	cp --remove-destination $< $@
else
# In one make: two would write the same archives.
.PHONY: shipped
shipped: ; $(MAKE) VARIANT=opt $(PROGRAMS:%=$(BUILD)/bin/%)
$(PROGRAMS:%=$(BUILD)/bin/%): shipped ;
endif

# The page comes from the program's own tables.
.PHONY: man
man: $(BUILD)/share/man/man1/orbweaver.1
$(BUILD)/share/man/man1/orbweaver.1: $(BUILD)/bin/orbweaver
	@mkdir -p $(@D)
	$(call say,MAN,$@)
	$(Q)$< man >$@

include tests/tests.mk
include hack/hack.mk

# ---- looking at the code ----------------------------------------------------------------------------------------------

C_FILES := $(sort $(shell find lib reconcilers operator nodeagent cli tests -name '*.[ch]' 2>/dev/null))
SHELL_FILES = $(shell grep -rlI '^\#!/bin/bash' hack tests .ci)
OWN_SOURCES := $(filter-out tests/%,$(filter %.c,$(C_FILES)))

# No cppcheck: 2.10 reads neither __VA_OPT__ nor statement expressions, which our macros are made of.
.PHONY: lint layers includes calls walks reasons metrics dashboards chart-docs markdown spdx format format-check shellcheck tidy analyzer report structure coverage
lint: layers structure markdown spdx shellcheck format-check tidy analyzer

layers: includes calls walks reasons metrics dashboards chart-docs

includes:
	@hack/layers $(foreach l,$(LIBRARIES),'$(l):$(uses.$(l))')

calls:
	@hack/calls $(LIBRARIES)

walks:
	@hack/walks

reasons:
	@hack/reasons

metrics:
	@hack/metrics

dashboards:
	@hack/dashboards

chart-docs:
	@hack/chart-docs --check

markdown:
	@hack/markdown

spdx:
	@hack/spdx

format:
	clang-format -i $(C_FILES)

format-check:
	@clang-format --dry-run --Werror $(C_FILES) && echo "format: as clang-format lays it out"
	@hack/columns $(C_FILES)

shellcheck:
	@printf '%s\n' $(SHELL_FILES) | xargs -n 8 -P $(shell nproc) shellcheck -x && echo "shellcheck: nothing to say"

# Checks and their exceptions are in .clang-tidy.
# Within quotes of the shell: its own go, those of C are escaped.
LINT_FLAGS = $(subst ",\",$(subst ',,$(COMMON))) $(shell $(PKG_CONFIG) --cflags $(ALL_PACKAGES))
tidy: $(GRPC_HEADERS)
	@hack/deps --check lint
	@printf '%s\n' $(OWN_SOURCES) | xargs -n4 -P$(shell nproc) sh -c \
		'clang-tidy --quiet "$$@" -- $(LINT_FLAGS) 2>/dev/null' tidy && echo "tidy: nothing to say"

analyzer: $(GRPC_HEADERS)
	@printf '%s\n' $(OWN_SOURCES) | xargs -n4 -P$(shell nproc) sh -c \
		'for f; do gcc $(LINT_FLAGS) -O1 -fanalyzer -c -o /dev/null "$$f" || bad=1; done; exit $${bad:-0}' analyzer \
		&& echo "analyzer: nothing to say"

# Figures of the structure: print them; may they be like this?
report:
	@hack/report
structure:
	@hack/report --check

coverage:
	@hack/deps --check lint
	@hack/coverage

.PHONY: clean help
clean:
	rm -rf $(BUILD)

help:
	@echo 'make              the programs, in build/bin, and the man page, in build/share/man'
	@echo 'make demo         a simulated cluster: the guides, networks, VFs, pods, a mistake explained, a broken link'
	@echo 'make demo-up      the same, left running, with a kubeconfig for kubectl; make demo-down ends it'
	@echo 'make demo-cluster     a control plane, virtual nodes, operator and agents, the guides, and what became of it'
	@echo 'make demo-cluster-up  the same, left running; demo-cluster-shell for kubectl, demo-cluster-down ends it'
	@echo 'make images       operator and agent as OCI archives in build/images; ARCH="amd64 arm64" for an index of both'
	@echo 'make arm64        all programs for arm64 in build/arm64, by a cross compiler; make arm64-test runs unit tests of them'
	@echo 'make release      what is published, in build/release: images, install files, chart, command line, SBOM, sums'
	@echo 'make check        install what is needed, build, and show each promise once: 12 minutes, then 6'
	@echo 'make check-all    all tests: clang, release, images, every integration test, virtual nodes; 35 minutes'
	@echo 'make check-changed BASE=HEAD  the tests and lints that the changes since BASE can affect'
	@echo 'make unit         the tests that need no cluster: seconds, once they are built'
	@echo 'make integration  the tests against a real API server'
	@echo 'make vm           the tests on virtual nodes: a kernel of their own, SR-IOV and RDMA in QEMU; minutes'
	@echo 'make rights       what operator and agent asked for in the last of these, against manifests/base/rbac.yaml'
	@echo 'make fuzz T=splitter SECONDS=60'
	@echo 'make golden-update  write the golden cases anew and show which changed'
	@echo 'make bench        figures against the budgets'
	@echo 'make profile      where the CPU of the operator goes'
	@echo 'make lint         layers, figures, reasons, Markdown, license lines, shellcheck, format, clang-tidy, gcc analyzer'
	@echo 'make format, report, coverage, clean'
