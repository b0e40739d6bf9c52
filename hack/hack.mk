# Targets for people: the demo. Included by the top Makefile.

DEMO_PROGRAMS := $(BUILD)/bin/orbweaver-operator $(BUILD)/release/tests/node-stand-in

# hack/deps first: on a fresh machine the compiler comes with it. So building is a make of its own.
.PHONY: demo demo-up demo-down
demo demo-up:
	hack/deps build cluster
	+$(MAKE) --no-print-directory VARIANT=release $(DEMO_PROGRAMS)
	BUILD=$(BUILD) hack/demo $(if $(filter demo-up,$@),up,run)
demo-down:
	BUILD=$(BUILD) hack/demo down
