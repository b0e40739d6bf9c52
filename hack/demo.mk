# The demo on a simulated cluster: seconds once it is built, no cluster, no virtual machine. Included by hack/hack.mk.

.PHONY: demo demo-up demo-down
demo demo-up:
	@hack/deps demo
	@echo "== building build/bin/orbweaver: some 300 C files when there is nothing yet"
	+@$(MAKE) --no-print-directory -s -j$(shell nproc) VARIANT=release $(BUILD)/bin/orbweaver
	@BUILD=$(BUILD) hack/demo-simulate $(if $(filter demo-up,$@),up,run)
demo-down:
	@BUILD=$(BUILD) hack/demo-simulate down
