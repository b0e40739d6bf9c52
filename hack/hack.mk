# Targets for people: images and the demo. Included by the top Makefile.

IMAGE_PROGRAMS := $(addprefix $(BUILD)/bin/orbweaver-,operator agent)

# hack/deps first: on a fresh machine the compiler comes with it. So building is a make of its own.
.PHONY: images
images:
	hack/deps build images
	+$(MAKE) --no-print-directory VARIANT=release $(IMAGE_PROGRAMS)
	BUILD=$(BUILD) hack/images operator agent

.PHONY: demo demo-up demo-shell demo-down
demo demo-up:
	hack/deps build cluster images node
	hack/k8s-build
	hack/k8s-build kubelet
	+$(MAKE) --no-print-directory -j$(shell nproc) VARIANT=release $(IMAGE_PROGRAMS)
	BUILD=$(BUILD) hack/images operator agent tools
	BUILD=$(BUILD) hack/demo $(if $(filter demo-up,$@),up,run)
demo-shell demo-down:
	@BUILD=$(BUILD) hack/demo $(patsubst demo-%,%,$@)
