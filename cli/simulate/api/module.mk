# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,cli/simulate/api,lib/base lib/json lib/loop lib/http lib/kube lib/kube/auth cli/simulate/objects reconcilers/core,jansson))
