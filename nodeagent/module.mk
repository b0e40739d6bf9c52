$(eval $(call library,nodeagent,lib/base lib/json lib/loop lib/kube lib/http nodeagent/host nodeagent/hostd nodeagent/kubelet nodeagent/plugind,jansson))
$(eval $(call program,orbweaver-agent,nodeagent/main.c,nodeagent nodeagent/plugind nodeagent/kubelet nodeagent/hostd nodeagent/host lib/grpc lib/http lib/kube lib/loop lib/json lib/base))
