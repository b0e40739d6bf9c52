# SPDX-License-Identifier: Apache-2.0
# libwebsockets by its static library: one file without another library to install, and the other programs take nothing of it.
STATIC_LIBS += -l:libwebsockets.a -l:libcap.a
$(eval $(call library,cli/live,lib/base lib/http lib/loop,))
