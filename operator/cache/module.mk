# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,operator/cache,lib/base lib/json lib/kube $(RECONCILERS),jansson))
