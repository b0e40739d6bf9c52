# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,operator/writer,lib/base lib/json lib/kube $(RECONCILERS) operator/cache,jansson))
