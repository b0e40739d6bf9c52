# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/hostd,lib/base lib/json lib/loop nodeagent/model nodeagent/host nodeagent/plugins nodeagent/pools,libcap-ng libseccomp jansson))
