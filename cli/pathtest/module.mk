# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,cli/pathtest,lib/base lib/json cli/explain reconcilers/core,jansson))
