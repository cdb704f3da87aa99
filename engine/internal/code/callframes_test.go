// SPDX-License-Identifier: Apache-2.0

package code

import (
	"os"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/aarch64"
)

// TestResolverOfTheDynamicLinkerIsEnteredWithWordsPushed asks for the rows of glibc's
// _dl_runtime_resolve for AArch64, into which the linkage table jumps when it has pushed two
// words: at every instruction of it the caller's stack pointer is above them, at the first
// one too, whose row does not have the return address yet.
func TestResolverOfTheDynamicLinkerIsEnteredWithWordsPushed(t *testing.T) {
	const path = "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"
	if _, err := os.Stat(path); err != nil {
		oracle.Missing(t, "%v", err)
	}
	file := moduleOf(t, nil, path)
	file.Arch = "aarch64"
	m := newLibrary(t, 0, aarch64.New()).Load(file, Loading{})
	defer m.Close()
	functions := 0
	for _, start := range startsOf(t, m.Code) {
		second, err := m.Row(t.Context(), start+4, true)
		if err != nil || second.Rules.Start != start+4 || second.Rules.CFA.Offset != 0 {
			continue
		}
		if back, _ := second.Rules.Rule(30); back.Kind != cfi.Offset || back.Offset != 8 {
			continue
		}
		functions++
		for at := start; at < start+0x20; at += 4 {
			row, err := m.Row(t.Context(), at, true)
			if err != nil {
				t.Fatal(err)
			}
			sp, _ := row.Rules.Rule(31)
			if want := (cfi.Rule{Kind: cfi.ValOffset, Offset: 16}); sp.Kind != want.Kind || sp.Offset != want.Offset {
				t.Errorf("%#x: the stack pointer's rule is %+v, expected %+v", at, sp, want)
			}
		}
	}
	if functions == 0 {
		t.Error("no such function")
	}
}
