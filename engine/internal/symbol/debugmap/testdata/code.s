# SPDX-License-Identifier: Apache-2.0
.text
.globl _assembled
.p2align 2
_assembled:
	ret
	ret
.globl _assembledToo
_assembledToo:
	ret
