# SPDX-License-Identifier: Apache-2.0
# libarchive by its static library: the shared one brings ICU and libxml2 along, which take longer to load than this program
# runs. Only its readers: its writers refer to each other, and to all these libraries.
STATIC_LIBS += -l:libarchive.a
$(eval $(call library,cli/support,lib/base lib/json reconcilers/core,jansson zlib))
