# SPDX-License-Identifier: Apache-2.0
# What simulated nodes run of the agent.
SIMULATED_AGENT := $(addprefix nodeagent/,agent pod_networks cni/server cni/state cni/worker process cni/plan worker host netlink host_plan devices model)
$(eval $(call library,cli,lib/base lib/json lib/loop lib/kube lib/kube/auth cli/explain cli/doctor cli/verbs cli/support cli/pathtest cli/live cli/simulate cli/simulate/objects cli/simulate/decide cli/simulate/nodes operator operator/cache nodeagent/host nodeagent/devices nodeagent/model $(RECONCILERS),jansson))
CLI_LIBRARIES := cli cli/explain cli/doctor cli/verbs cli/support cli/pathtest cli/live cli/simulate cli/simulate/api cli/simulate/objects cli/simulate/nodes cli/simulate/host cli/simulate/decide operator operator/controllers operator/cache operator/writer operator/server $(SIMULATED_AGENT) $(RECONCILERS) lib/http lib/kube lib/kube/auth lib/loop lib/json lib/base
$(eval $(call program,orbweaver,cli/main.c,$(CLI_LIBRARIES)))
# It has the page in it.
$(OUT)/cli/explain.o: docs/reasons.md
# So has this one.
$(OUT)/cli/report_page.o: cli/report.html cli/report_live.js
# For other systems than the one it is compiled on: of libraries it looks for the C library alone there. The map says for
# hack/release what is inside. Debian names libuv's archive differently.
$(OUT)/portable/orbweaver: private LIBS = -static-libgcc -Wl,-Map=$@.map $(STATIC_LIBS) -Wl,-Bstatic \
	$(patsubst -luv,-l:libuv_a.a,$(filter-out -pthread -lpthread -ldl -lrt,$(shell $(PKG_CONFIG) --libs $(ALL_PACKAGES)))) -Wl,-Bdynamic
$(OUT)/portable/orbweaver: $(OUT)/cli/main.o $(foreach l,$(CLI_LIBRARIES),$(OUT)/$(l).a) $(CURL_ARCHIVE)
	@mkdir -p $(@D)
	$(LINK)
