# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/process,lib/base lib/json lib/loop,libcap-ng libseccomp jansson))
