# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,lib/kube,lib/base lib/json lib/loop lib/kube/auth,libcurl libuv jansson))
