// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// FuzzFrameRules: any words give a valid answer, within the bounds of its work, and the
// same one twice.
func FuzzFrameRules(f *testing.F) {
	for _, seed := range [][]byte{
		codeOf(0xa9be7bfd, 0x910003fd, 0x94000004, 0xa8c27bfd, 0xd65f03c0),
		codeOf(0xd2801168, 0xd4000001),
		codeOf(0xd503233f, 0xa9bf7bfd, 0xb4000060, 0x94000100, 0x14000002, 0x94000100, 0xa8c17bfd, 0xd65f0bff),
		codeOf(0xb0000090, 0xf947fa11, 0x913fc210, 0xd61f0220),
		codeOf(0xa9bf7bf0, 0xb0000090, 0xf947fa11, 0x913fc210, 0xd61f0220),
		codeOf(0xcb2063ff, 0xcb3063ff, 0xeb2c63ff, 0x54ffffc1, 0x910003bf),             // frames of a size that is not known, and probes
		codeOf(0xf81e0ffe, 0xf81f83fd, 0x94000100, 0xa97ffbfd, 0xd65f03c0),             // Go's
		codeOf(0xa9be7bfd, 0x8b20c001, 0xd61f0020, 0x94000100, 0xa8c27bfd, 0xd65f03c0), // a table
	} {
		for flags := range uint8(8) {
			f.Add(seed, uint16(len(seed)/2), flags, "")
		}
		f.Add(seed, uint16(0), uint8(3), ".plt")
	}
	f.Fuzz(func(t *testing.T, code []byte, at uint16, flags uint8, name string) {
		if int(at) >= len(code) {
			return
		}
		r := sdk.CodeRange{PC: testBase + uint64(at), Start: testBase, Code: code, Bounded: flags&1 != 0, Exact: flags&2 != 0, Name: name}
		if flags&4 != 0 {
			r.Start = -uint64(len(code)) // up to the end of the address space
			r.PC = r.Start + uint64(at)
		}
		for range 2 {
			first, second := ask(t, r), ask(t, r)
			if !r.Exits && (len(first.Rows) == 0 || !codeflow.Rows(first.Rows).Covers(r.PC)) && first.Reason == "" {
				t.Errorf("no row for the PC and no reason: %+v", first)
			}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Fatalf("(-first +second)\n%s", diff)
			}
			r.Exits = true
		}
	})
}
