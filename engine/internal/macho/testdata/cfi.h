/* SPDX-License-Identifier: Apache-2.0 */
/* The call frame information of all functions, beside their compact unwind encodings: see dwarf_test.go. */
__asm__(".cfi_sections .eh_frame, .debug_frame");
