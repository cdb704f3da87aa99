// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/minidump"
	"github.com/unwindd/unwindd/engine/object"
)

const x86Dump = "../internal/target/minidump/testdata/minidump2.dmp"

// TestDamagedDumpsArePrinted has a dump with each of its first bytes cut off, and with bytes
// that are wrong: the rest is printed.
func TestDamagedDumpsArePrinted(t *testing.T) {
	whole, err := os.ReadFile(x86Dump)
	if err != nil {
		t.Fatal(err)
	}
	printed := 0
	try := func(data []byte) {
		d, err := minidump.Read("cut.dmp", data)
		if err != nil {
			return
		}
		printed++
		err = object.Guard(func() error {
			m := NewMinidump(d)
			var b bytes.Buffer
			if err := m.WriteJSON(&b); err != nil {
				return err
			}
			if !json.Valid(b.Bytes()) {
				t.Error("no JSON")
			}
			return m.WriteText(io.Discard, true)
		})
		if err != nil {
			t.Error(err)
		}
	}
	for size := 32; size < len(whole); size += 37 {
		try(whole[:size])
	}
	for at := 0; at < 2048; at += 3 {
		data := bytes.Clone(whole)
		data[at] ^= 0xff
		try(data)
	}
	if printed < 500 {
		t.Errorf("%d were printed", printed)
	}
}

// Text of a dump does nothing to a terminal, and makes no lines of its own.
func TestTextOfADumpIsEscaped(t *testing.T) {
	m := &Minidump{
		File: "x.dmp", Comments: []string{"a\x1b[31m\nb"}, Modules: []dumpModule{{Base: "0x0", Size: "0x0", Name: "m\x1b]0;x\a"}},
		Linux: &dumpLinux{Status: "Name:\tx\x1b[2J\nPid:\t1\n", CommandLine: []string{"\u202e"}},
	}
	var b strings.Builder
	if err := m.WriteText(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"\x1b", "\a", "\u202e", "\nb"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%q is in the text:\n%q", bad, b.String())
		}
	}
	if !strings.Contains(b.String(), "  Name:\tx") || !strings.Contains(b.String(), "\n  Pid:\t1\n") {
		t.Errorf("the lines of status are not there:\n%s", b.String())
	}
}
