// SPDX-License-Identifier: Apache-2.0
// What Microsoft's compiler refers to.
void *type_info_table[4] __asm__("??_7type_info@@6B@");
