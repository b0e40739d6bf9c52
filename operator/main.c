// SPDX-License-Identifier: Apache-2.0
/* The program orbweaver-operator: all of it is in program.c, so that others can start it, too. */
#include "operator/program.h"

int main(int argc, char **argv)
{
	return operator_program(argc, argv);
}
