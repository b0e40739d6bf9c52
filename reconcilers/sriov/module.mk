$(eval $(call library,reconcilers/sriov,lib/base lib/json reconcilers/core,jansson))
