# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/cni/plugin,,))

# Static, for hosts of which nothing is known; with another C library than ours, for its size. It is the
# only program that is.
PROGRAMS += orbweaver-cni
ifneq ($(filter opt amd64 arm64,$(VARIANT)),)
MUSL_GCC.opt := musl-gcc
MUSL_GCC.amd64 := x86_64-linux-gnu-gcc -specs=$(SYSROOT)/musl-gcc.specs
MUSL_GCC.arm64 := aarch64-linux-gnu-gcc -specs=$(SYSROOT)/musl-gcc.specs
$(OUT)/orbweaver-cni: $(wildcard nodeagent/cni/plugin/*.[ch]) nodeagent/cni/plugin/module.mk
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(MUSL_GCC.$(VARIANT)) $(filter-out -D_FORTIFY_SOURCE=2,$(COMMON)) -Os -flto -static -fstack-protector-strong -ffunction-sections \
		-fdata-sections -Wl,--gc-sections -Wl,-z,relro -s -o $@ $(filter %.c,$^)
else
$(OUT)/orbweaver-cni: $(OUT)/nodeagent/cni/plugin/main.o $(OUT)/nodeagent/cni/plugin.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS.$(VARIANT)) $(LDFLAGS.$(VARIANT)) -o $@ $^
endif
