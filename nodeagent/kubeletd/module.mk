# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/kubeletd,lib/base lib/json lib/loop nodeagent/plugins nodeagent/pools nodeagent/process,jansson))
