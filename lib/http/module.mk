# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,lib/http,lib/base lib/json lib/loop,openssl))
