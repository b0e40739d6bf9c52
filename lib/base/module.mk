# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,lib/base,,))
