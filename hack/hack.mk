# Targets for people: images and the demo on virtual nodes. Included by the top Makefile.

IMAGE_PROGRAMS := $(addprefix $(BUILD)/bin/orbweaver-,operator agent cni)

# hack/deps first: on a fresh machine the compiler comes with it. So building is a make of its own.
.PHONY: images
images:
	hack/deps build images
	hack/curl-build || test $$? = 77
	+$(MAKE) --no-print-directory VARIANT=release $(IMAGE_PROGRAMS)
	BUILD=$(BUILD) hack/images operator agent manifests

# Operator, agent and command line for arm64 (Grace, BlueField); the static CNI plugin and images are for this machine alone.
.PHONY: arm64
arm64:
	hack/deps build cross
	+root=$$(hack/sysroot arm64) && SYSROOT=$$root PKG_CONFIG_SYSROOT_DIR=$$root \
		PKG_CONFIG_LIBDIR=$$root/usr/lib/aarch64-linux-gnu/pkgconfig:$$root/usr/share/pkgconfig \
		$(MAKE) --no-print-directory VARIANT=arm64 $(addprefix $(BUILD)/arm64/,orbweaver-operator orbweaver-agent orbweaver)

# What the cluster needs besides our programs. Side by side: one waits for the network while another compiles.
.PHONY: cluster-parts libcurl kubernetes virtual-nodes
cluster-parts: libcurl kubernetes virtual-nodes
libcurl:
	@hack/curl-build || test $$? = 77
kubernetes:
	@hack/k8s-build
virtual-nodes:
	@hack/node-build --exclusive || test $$? = 77

.PHONY: demo-cluster demo-cluster-up demo-cluster-shell demo-cluster-down
demo-cluster demo-cluster-up:
	hack/deps build cluster images node
	+@$(MAKE) --no-print-directory -j3 cluster-parts
	+$(MAKE) --no-print-directory -j$(shell nproc) VARIANT=release $(IMAGE_PROGRAMS) $(BUILD)/bin/orbweaver
	BUILD=$(BUILD) hack/images operator agent tools
	BUILD=$(BUILD) hack/demo-cluster $(if $(filter demo-cluster-up,$@),up,run)
demo-cluster-shell demo-cluster-down:
	@BUILD=$(BUILD) hack/demo-cluster $(patsubst demo-cluster-%,%,$@)
