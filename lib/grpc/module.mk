# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,lib/grpc,lib/base lib/loop,libnghttp2 libprotobuf-c))

# Messages of the kubelet's APIs: C from .proto at build time, part of the archive. Included as "lib/grpc/proto/NAME.pb-c.h".
# Whoever includes one depends on $(GRPC_HEADERS), order-only: they have to exist before the first compilation.
GRPC_PROTOS := $(sort $(wildcard lib/grpc/proto/*.proto))
GRPC_HEADERS := $(GRPC_PROTOS:%.proto=$(OUT)/gen/%.pb-c.h)
GRPC_OBJECTS := $(GRPC_PROTOS:%.proto=$(OUT)/gen/%.pb-c.o)

$(OUT)/gen/%.pb-c.c $(OUT)/gen/%.pb-c.h: %.proto
	@mkdir -p $(OUT)/gen
	$(call say,PROTO,$@)
	$(Q)protoc-c --c_out=$(OUT)/gen $<

$(OUT)/gen/%.pb-c.o: $(OUT)/gen/%.pb-c.c
	$(call say,CC,$@)
	$(Q)$(CC) $(COMMON) $(CFLAGS.$(VARIANT)) $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<

.SECONDARY: $(GRPC_OBJECTS:.o=.c) $(GRPC_HEADERS)
$(OUT)/lib/grpc.a: $(GRPC_OBJECTS)

GRPC_USERS := $(wildcard nodeagent/kubelet/*.c tests/unit/grpc/*.c tests/fuzz/grpc_*.c tests/fakes/grpc_*.c)
$(GRPC_USERS:%.c=$(OUT)/%.o): | $(GRPC_HEADERS)

# The peer of tests/integration/grpc_test.sh.
test-build: $(OUT)/tests/grpc-peer
$(OUT)/tests/grpc-peer: $(OUT)/tests/fakes/grpc_peer.o $(foreach l,lib/grpc lib/loop lib/base,$(OUT)/$(l).a)
	$(LINK)
