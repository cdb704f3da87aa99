// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"reflect"
	"testing"

	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// FuzzFrameRules: any bytes give a valid answer, within the bounds of its work,
// and the same one twice.
func FuzzFrameRules(f *testing.F) {
	for _, seed := range []string{
		"\xf3\x0f\x1e\xfa\x53\x48\x83\xec\x10\x89\xfb\xe8\x00\x01\x00\x00\x48\x83\xc4\x10\x5b\xc3",
		"\x55\x48\x89\xe5\x48\x83\xe4\xc0\xc9\xc3",
		"\x4c\x8d\x54\x24\x08\x48\x83\xe4\xe0\x41\xff\x72\xf8\x55\x48\x89\xe5\x41\x52\xc9\x49\x8d\x62\xf8\xc3",
		"\x53\x83\xff\x03\x77\x16\x48\x8d\x15\xc1\x00\x00\x00\x48\x63\x04\xba\x48\x01\xd0\x3e\xff\xe0\xb8\x01\x00\x00\x00\x5b\xc3",
		"\x90\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05",
		"\xff\x35\xe2\x2f\x00\x00\xff\x25\xe4\x2f\x00\x00\x0f\x1f\x40\x00\xff\x25\xe2\x2f\x00\x00\x68\x05\x00\x00\x00\xe9\xd0\xff\xff\xff",
		"\x6a\x06\x6a\x05\xe8\x48\xff\xff\xff\x89\xf7\xe8\xb7\xfd\xff\xff\xc3",
		"\x75\xfe\x74\xfc\x50\xeb\xfa",
		"\x31\xed\x5f\x41\xff\xd1\x89\xc7\x31\xc0\xb0\x3c\x0f\x05\xf4",
		"\xff\xd0\x48\x8b\x65\xf0\x48\xc7\x45\xf0\x00\x00\x00\x00\x4c\x8b\x6d\xc0\x4c\x8b\x75\xc8",
		"\xff\xd0\x4c\x8b\x5d\xf8\xc9\x5f\x49\x8b\xe3\xff\xe7",
		"\x48\x83\xc5\x08\xff\x65\x00",
	} {
		for flags := range uint8(4) {
			f.Add([]byte(seed), uint16(len(seed)/2), flags, "")
		}
		f.Add([]byte(seed), uint16(0), uint8(3), ".plt")
	}
	f.Fuzz(func(t *testing.T, code []byte, at uint16, flags uint8, name string) {
		r := sdk.CodeRange{PC: testBase + uint64(at), Start: testBase, Code: code, Bounded: flags&1 != 0, Exact: flags&2 != 0, Name: name}
		if flags&4 != 0 {
			r.Start = -uint64(len(code)) // up to the end of the address space
			r.PC = r.Start + uint64(at)
		}
		first := ask(t, r)
		if (len(first.Rows) == 0 || !codeflow.Rows(first.Rows).Covers(r.PC)) && first.Reason == "" {
			t.Errorf("no row for the PC and no reason: %+v", first)
		}
		second := ask(t, r)
		a, b := rowTexts(r.Start, &first), rowTexts(r.Start, &second)
		if len(a) != len(b) {
			t.Fatalf("%v, then %v", a, b)
		}
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("%s, then %s", a[i], b[i])
			}
		}
		r.Exits = true
		exits, again := ask(t, r), ask(t, r)
		if !reflect.DeepEqual(exits, again) {
			t.Fatalf("exits %+v, then %+v", exits.Exits, again.Exits)
		}
	})
}

func TestFrameRulesOfTooMuchCode(t *testing.T) {
	code := make([]byte, x86code.MaxCode+1) // add %al,(%rax)
	got := ask(t, sdk.CodeRange{PC: testBase, Start: testBase, Code: code, Bounded: true, Exact: true})
	if len(got.Rows) > 0 || got.Reason == "" {
		t.Errorf("rows %v, reason %q", got.Rows, got.Reason)
	}
}
