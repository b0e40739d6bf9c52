$(eval $(call library,reconcilers/spider,lib/base lib/json reconcilers/core,jansson))
