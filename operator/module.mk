# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,operator,lib/base lib/json lib/loop lib/kube lib/kube/auth lib/http $(RECONCILERS) operator/cache operator/writer operator/controllers operator/server,jansson))
$(OUT)/orbweaver-operator: private EXTRA_LIBS += $(MALLOC.$(VARIANT))
$(eval $(call program,orbweaver-operator,operator/main.c,operator operator/controllers operator/cache operator/writer operator/server $(RECONCILERS) nodeagent/cni/plan nodeagent/model lib/http lib/kube lib/kube/auth lib/loop lib/json lib/base))
# It has the definition in it.
$(OUT)/operator/nad_definition.o: crds/nad/network-attachment-definitions.k8s.cni.cncf.io.yaml
