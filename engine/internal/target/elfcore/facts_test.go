// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// TestFactsAreWhatTheNotesSay has a core of a process that accessed what it had not mapped.
func TestFactsAreWhatTheNotesSay(t *testing.T) {
	b := little64()
	info := b.info(12, "server")
	copy(info[b.offset(48, 56):], "./server --port 80 ")
	var notes []byte
	notes = b.note(notes, coreOwner, ntPRSTATUS, b.status(10, 11, 0x100, 0))
	notes = b.note(notes, coreOwner, ntPRPSINFO, info)
	notes = b.note(notes, coreOwner, ntSIGINFO, b.siginfo(11, 1, 0xdead))
	notes = b.note(notes, coreOwner, ntAUXV, b.words(nil, atEntry, 0x401040, 0, 0))
	b.parts = []part{{typ: elf.PT_NOTE, data: notes}}
	c := openBytes(t, b.numbers, b.core())
	want := &trace.Facts{
		Process: trace.Process{ID: 12, Executable: "server", Command: "./server --port 80", Main: 0x401040, User: new(uint32)},
		System:  trace.System{OS: "Linux", Arch: c.header.arch()},
		Crash:   &trace.Crash{Name: "SIGSEGV / SEGV_MAPERR", Address: 0xdead, HasAddress: true, Thread: "10", Code: 1, HasCode: true},
	}
	if diff := cmp.Diff(want, c.Info().Facts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
