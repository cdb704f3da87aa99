// SPDX-License-Identifier: Apache-2.0

package mach

import "testing"

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{BadAccess.Name(), "EXC_BAD_ACCESS"},
		{Exception(99).Name(), ""},
		{BadAccess.CodeName("x86_64", GeneralProtection), "EXC_I386_GPFLT"},
		{BadAccess.CodeName("aarch64", GeneralProtection), ""},
		{BadAccess.CodeName("", InvalidAddress), "KERN_INVALID_ADDRESS"},
		{Breakpoint.CodeName("aarch64", TrapARM), "EXC_ARM_BREAKPOINT"},
		{Breakpoint.CodeName("i386", TrapX86), "EXC_I386_BPT"},
		{Resource.CodeName("aarch64", 3<<61|5), "RESOURCE_TYPE_MEMORY"},
		{Resource.CodeName("aarch64", 3<<29), "RESOURCE_TYPE_MEMORY"},
		{Guard.CodeName("aarch64", 7<<61), ""},
		{SignalOf(6 << 24), "SIGABRT"},
		{SignalOf(0x0b100000), "SIGSEGV, of EXC_BAD_ACCESS"},
		{SignalOf(0), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, expected %q", c.got, c.want)
		}
	}
	for number, n := range exceptions {
		if e, ok := Named(n.name); !ok || e.Name() != n.name {
			t.Errorf("%d: %s is the name of %d", number, n.name, e)
		}
	}
	if _, ok := Named(""); ok {
		t.Error("an exception without a name")
	}
}
