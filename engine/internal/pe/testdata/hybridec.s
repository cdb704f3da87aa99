/* SPDX-License-Identifier: Apache-2.0 */
/* The load configuration of an ARM64EC file, and the metadata that the linker fills in: see hybrid_test.go. */
        .section .rdata,"dr"
        .globl _load_config_used
        .p2align 3, 0
_load_config_used:
        .word 0x140
        .fill 0xc4, 1, 0
        .xword __chpe_metadata
        .fill 0x70, 1, 0
        .globl __chpe_metadata
        .p2align 3, 0
__chpe_metadata:
        .word 1
        .rva __hybrid_code_map
        .word __hybrid_code_map_count
        .rva __x64_code_ranges_to_entry_points
        .rva __arm64x_redirection_metadata
        .rva __os_arm64x_dispatch_call_no_redirect
        .rva __os_arm64x_dispatch_ret
        .rva __os_arm64x_check_call
        .rva __os_arm64x_check_icall
        .rva __os_arm64x_check_icall_cfg
        .word 0
        .rva __hybrid_auxiliary_iat
        .word __x64_code_ranges_to_entry_points_count
        .word __arm64x_redirection_metadata_count
        .word 0
        .word 0
        .rva __arm64x_extra_rfe_table
        .word __arm64x_extra_rfe_table_size
        .rva __os_arm64x_check_call
        .rva __hybrid_auxiliary_iat_copy
        .data
        .globl __os_arm64x_dispatch_call_no_redirect
__os_arm64x_dispatch_call_no_redirect: .xword 0
        .globl __os_arm64x_dispatch_ret
__os_arm64x_dispatch_ret: .xword 0
        .globl __os_arm64x_check_call
__os_arm64x_check_call: .xword 0
        .globl __os_arm64x_check_icall
__os_arm64x_check_icall: .xword 0
        .globl __os_arm64x_check_icall_cfg
__os_arm64x_check_icall_cfg: .xword 0
