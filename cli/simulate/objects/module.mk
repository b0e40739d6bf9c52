# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,cli/simulate/objects,lib/base lib/json reconcilers/core,jansson))
