# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,cli/simulate,lib/base lib/json lib/loop lib/http cli/simulate/api cli/simulate/nodes operator,jansson))
# The definitions are in the program: it runs from a plain build and from wherever it is copied.
DEFINITIONS := $(wildcard crds/*.yaml crds/nad/*.yaml)
$(OUT)/gen/definitions.yaml: $(DEFINITIONS)
	@mkdir -p $(@D)
	$(Q)for f in $^; do echo ---; cat "$$f"; done >$@
$(OUT)/cli/simulate/definitions.o: $(OUT)/gen/definitions.yaml
# Multiples of fractions, in schemas.
STATIC_LIBS += -lm
