# What simulated nodes run of the agent.
SIMULATED_AGENT := $(addprefix nodeagent/,simulated_host agent networks addresses cni attach hostd host plan pools dra meta model)
$(eval $(call library,cli,lib/base lib/json lib/loop lib/kube lib/kube/auth cli/explain cli/doctor cli/support cli/pathtest cli/simulate cli/simulate/decide cli/simulate/nodes operator nodeagent/host $(RECONCILERS),jansson))
$(eval $(call program,orbweaver,cli/main.c,cli cli/explain cli/doctor cli/support cli/pathtest cli/simulate cli/simulate/api cli/simulate/objects cli/simulate/nodes cli/simulate/decide operator $(SIMULATED_AGENT) $(RECONCILERS) lib/http lib/kube lib/kube/auth lib/loop lib/json lib/base))
# It has the page in it.
$(OUT)/cli/explain.o: docs/reasons.md
# So has this one.
$(OUT)/cli/report.o: cli/report.html
