# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/process,lib/base lib/json lib/loop nodeagent/model nodeagent/cni/worker,libcap-ng libseccomp jansson))
