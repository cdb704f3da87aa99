// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"os"
	"path/filepath"
	"testing"
)

// A plugin is started early for the machine: only where there are stacks to walk.
func TestStackMachineIsOfRecordingsWithStacks(t *testing.T) {
	const chains = SampleIP | SampleTID | SampleTime | SampleCallchain
	for _, c := range []struct {
		types []SampleType
		want  string
	}{
		{[]SampleType{chains}, ""},
		{[]SampleType{chains | SampleRegsUser}, ""}, // the link register beside a chain
		{[]SampleType{chains | SampleRegsUser | SampleStackUser}, "x86_64"},
		{[]SampleType{chains, chains | SampleRegsUser | SampleStackUser}, "x86_64"},
	} {
		var list []Attr
		for _, of := range c.types {
			list = append(list, Attr{SampleType: of})
		}
		b := newBuilder(false, list...)
		b.comm(1, 1, 0, "program", 0) // without records it is not finished
		b.feature[featureArch] = b.pack(uint32(8), []byte("x86_64\x00\x00"))
		path := filepath.Join(t.TempDir(), "perf.data")
		if err := os.WriteFile(path, b.bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := StackMachine(path); got != c.want {
			t.Errorf("samples of %x: %q, want %q", c.types, got, c.want)
		}
	}
}
