/* SPDX-License-Identifier: Apache-2.0 */
/* The load configuration of the native part of an ARM64X file. */
        .section .rdata,"dr"
        .globl _load_config_used
        .p2align 3, 0
_load_config_used:
        .word 0x140
        .fill 0xc4, 1, 0
        .xword __chpe_metadata
        .fill 0x70, 1, 0
