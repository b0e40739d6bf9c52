# SPDX-License-Identifier: Apache-2.0
# libibverbs and CUDA are opened at run time: most machines that run the command have neither.
$(eval $(call library,cli/verbs,lib/base,))
