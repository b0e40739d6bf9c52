$(eval $(call library,reconcilers/maintenance,lib/base lib/json reconcilers/core reconcilers/sriov,jansson))
