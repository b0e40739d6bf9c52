$(eval $(call library,cli,lib/base lib/json lib/loop lib/kube lib/kube/auth cli/explain cli/doctor cli/support cli/pathtest cli/simulate operator nodeagent/host $(RECONCILERS),jansson))
$(eval $(call program,orbweaver,cli/main.c,cli cli/explain cli/doctor cli/support cli/pathtest cli/simulate cli/simulate/api cli/simulate/objects operator nodeagent/host nodeagent/dra nodeagent/model $(RECONCILERS) lib/http lib/kube lib/kube/auth lib/loop lib/json lib/base))
# It has the page in it.
$(OUT)/cli/explain.o: docs/reasons.md
# So has this one.
$(OUT)/cli/report.o: cli/report.html
