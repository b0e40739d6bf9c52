# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,operator/server,lib/base lib/json lib/loop lib/kube lib/kube/auth lib/http $(RECONCILERS) operator/controllers,jansson))
