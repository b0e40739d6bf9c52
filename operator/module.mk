$(eval $(call library,operator,lib/base lib/json lib/loop lib/kube lib/http reconcilers,jansson))
$(eval $(call program,orbweaver-operator,operator/main.c,operator reconcilers lib/http lib/kube lib/loop lib/json lib/base))
