// SPDX-License-Identifier: Apache-2.0
/*
 * One kernel for several processes with a host made of files (cli/simulate/host/host_tree.h): what
 * no file of the tree shows is the same in all of them. One tree per process.
 */
#pragma once

#include "cli/simulate/host/host_tree.h"

/*
 * From now on shared_kernel_doors() of this process and of those that it forks lead to one kernel.
 * What tests do to the tree, and interfaces that plugins make, are not for shared ones.
 */
void shared_kernel_begin(struct host_tree *tree);
/* host_tree_reopen(), and the kernel: in a child that has closed all descriptors. */
void shared_kernel_reopen(struct host_tree *tree);
/* The doors of such a tree. */
const struct host_doors *shared_kernel_doors(void);
/* In the process that began it, before the tree is freed or another one is shared. */
void shared_kernel_end(void);
