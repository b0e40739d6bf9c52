$(eval $(call library,operator,lib/base lib/json lib/loop lib/kube lib/kube/auth lib/http $(RECONCILERS),jansson))
$(eval $(call program,orbweaver-operator,operator/main.c,operator $(RECONCILERS) lib/http lib/kube lib/kube/auth lib/loop lib/json lib/base))
