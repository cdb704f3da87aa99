// SPDX-License-Identifier: Apache-2.0

package dw

// The languages DW_LANG_* (DWARF 5, 7.12, table 7.17, and the heterogeneous extension, A.7.12).
const (
	LangAda83     = 0x0003
	LangCPP       = 0x0004
	LangCobol74   = 0x0005
	LangCobol85   = 0x0006
	LangFortran77 = 0x0007
	LangFortran90 = 0x0008
	LangPascal83  = 0x0009
	LangModula2   = 0x000a
	LangAda95     = 0x000d
	LangFortran95 = 0x000e
	LangPLI       = 0x000f
	LangObjCPP    = 0x0011
	LangOpenCL    = 0x0015
	LangGo        = 0x0016
	LangModula3   = 0x0017
	LangCPP03     = 0x0019
	LangCPP11     = 0x001a
	LangRust      = 0x001c
	LangC11       = 0x001d
	LangJulia     = 0x001f
	LangCPP14     = 0x0021
	LangFortran03 = 0x0022
	LangFortran08 = 0x0023
	LangCPP17     = 0x002a
	LangCPP20     = 0x002b
	LangFortran18 = 0x002d
	LangAda2005   = 0x002e
	LangAda2012   = 0x002f
	LangCPP23     = 0x003a
	LangLLVMHIP   = 0x8100
)
