# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,operator/controllers,lib/base lib/json lib/kube lib/http $(RECONCILERS) operator/cache,jansson))
