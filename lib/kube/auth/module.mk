# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,lib/kube/auth,lib/base lib/json lib/loop,libuv jansson))
