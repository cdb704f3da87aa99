// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// threadView is what tests compare of a thread.
type threadView struct {
	ID, Name string
	Crashed  bool
	Signal   int
	PC       uint64
	Extra    uint64
	Problem  string
}

func views(c *Core) (list []threadView) {
	for i, th := range c.Threads() {
		if th.Handle != uint64(i) {
			panic("handles are not indexes")
		}
		v := threadView{ID: th.ID, Name: th.Name, Crashed: th.Crashed, Signal: th.Signal, Problem: th.Problem}
		v.PC, _ = th.Registers.Uint64(testPC, c.description.ByteOrder)
		v.Extra, _ = th.Registers.Uint64(testExtra, c.description.ByteOrder)
		list = append(list, v)
	}
	return list
}

func TestNotesBelongToTheThreadBeforeThem(t *testing.T) {
	b := little64()
	extra := func(v uint64) []byte { return appendOrder(b.order, nil, 4, v) }
	var notes []byte
	notes = b.note(notes, "LINUX", 0x202, extra(999)) // of no thread
	notes = b.note(notes, coreOwner, ntPRSTATUS, b.status(10, 11, 0x100, 0))
	notes = b.note(notes, coreOwner, ntPRPSINFO, b.info(12, "a name of 16 c..")[:136])
	notes = b.note(notes, coreOwner, ntSIGINFO, b.siginfo(11, 1, 0xdead))
	notes = b.note(notes, "LINUX", 0x202, extra(1))
	notes = b.note(notes, coreOwner, ntPRSTATUS, b.status(11, 11, 0x200, 0))
	notes = b.note(notes, "LINUX", 0x205, []byte("layout"))
	notes = b.note(notes, coreOwner, ntPRSTATUS, b.status(12, 11, 0x300, 0))
	notes = b.note(notes, "LINUX", 0x202, extra(3))
	notes = b.note(notes, "AMDGPU", 33, []byte("gpu state"))
	notes = b.note(notes, coreOwner, 4, []byte("task"))
	b.parts = []part{{typ: elf.PT_NOTE, data: notes}}
	c := openBytes(t, b.numbers, b.core())
	want := []threadView{
		{ID: "10", Crashed: true, Signal: 11, PC: 0x100, Extra: 1},
		{ID: "11", PC: 0x200},
		{ID: "12", Name: "a name of 16 c..", PC: 0x300, Extra: 3},
	}
	if diff := cmp.Diff(want, views(c)); diff != "" {
		t.Error(diff)
	}
	info := c.Info()
	if info.Signal != 11 || !info.HasFaultAddress || info.FaultAddress != 0xdead {
		t.Errorf("%+v", info)
	}
	wantNotes := []sdk.Note{
		{Owner: "LINUX", Type: 0x202, Data: extra(999)},
		{Owner: "LINUX", Type: 0x205, Data: []byte("layout")},
		{Owner: "AMDGPU", Type: 33, Data: []byte("gpu state")},
		{Owner: "CORE", Type: 4, Data: []byte("task")},
	}
	if diff := cmp.Diff(wantNotes, info.Notes); diff != "" {
		t.Error(diff)
	}
	if p := problemsOf(c); !strings.Contains(p, "NT_AMDGPU_CORE_STATE") || strings.Contains(p, "\n") {
		t.Error(p)
	}
}

func TestWhatACrashIs(t *testing.T) {
	kernel, debugger := false, true
	for name, test := range map[string]struct {
		machine     elf.Machine
		by          bool
		cursig      int16
		signo, code int32 // of NT_SIGINFO; 0: none
		signal      int
		fault       bool
		stop        string // the reason of the crashed thread
	}{
		"fault":                             {by: kernel, cursig: 11, signo: 11, code: 1, signal: 11, fault: true, stop: sdk.StopMemoryFault},
		"bus error":                         {by: kernel, cursig: 7, signo: 7, code: 2, signal: 7, fault: true, stop: sdk.StopAddressError},
		"abort":                             {by: kernel, cursig: 6, signo: 6, code: -6, signal: 6},
		"kill -SEGV":                        {by: kernel, cursig: 11, signo: 11, code: 0, signal: 11},
		"address that is not canonical":     {by: kernel, cursig: 11, signo: 11, code: 0x80, signal: 11},
		"shadow stack":                      {by: kernel, cursig: 11, signo: 11, code: 10, signal: 11},
		"no siginfo":                        {by: kernel, cursig: 11, signal: 11},
		"siginfo of another signal":         {by: kernel, cursig: 11, signo: 7, code: 1, signal: 11},
		"breakpoint that nobody waited for": {by: kernel, cursig: 5, signo: 5, code: 0x80, signal: 5},
		"quit":                              {by: kernel, cursig: 3, signal: 3},
		"division by zero":                  {by: kernel, cursig: 8, signo: 8, code: 1, signal: 8, fault: true, stop: sdk.StopMathError},
		"bus error of MIPS":                 {machine: elf.EM_MIPS, by: kernel, cursig: 10, signal: 10},
		"number 7 is not fatal on MIPS":     {machine: elf.EM_MIPS, by: kernel, cursig: 7},
		"gcore of a running process":        {by: debugger, cursig: 0, signo: 19, code: 0x80},
		"gcore at a breakpoint":             {by: debugger, cursig: 5, signo: 5, code: 0x80},
		"gcore after Ctrl-C":                {by: debugger, cursig: 2, signo: 2, code: 0x80},
		"gcore where the program is about to die": {by: debugger, cursig: 11, signo: 11, code: 1, signal: 11, fault: true, stop: sdk.StopMemoryFault},
		"stopped":    {by: debugger, cursig: 19, signo: 19},
		"terminated": {by: debugger, cursig: 15, signo: 15},
	} {
		t.Run(name, func(t *testing.T) {
			b := little64()
			if test.machine != 0 {
				b.machine = test.machine
			}
			var notes []byte
			if test.by == debugger {
				notes = b.note(notes, coreOwner, ntPRPSINFO, b.info(1, "p"))
			}
			notes = b.note(notes, coreOwner, ntPRSTATUS, b.status(1, test.cursig, 0x100, 0))
			if test.by == kernel {
				notes = b.note(notes, coreOwner, ntPRPSINFO, b.info(1, "p"))
			}
			if test.signo != 0 {
				notes = b.note(notes, coreOwner, ntSIGINFO, b.siginfo(test.signo, test.code, 0x1234))
			}
			notes = b.note(notes, coreOwner, ntPRSTATUS, b.status(2, test.cursig, 0x200, 0))
			b.parts = []part{{typ: elf.PT_NOTE, data: notes}}
			c := openBytes(t, b.numbers, b.core())
			want := []threadView{{ID: "1", Name: "p", Crashed: test.signal != 0, Signal: test.signal, PC: 0x100}, {ID: "2", PC: 0x200}}
			if diff := cmp.Diff(want, views(c)); diff != "" {
				t.Error(diff)
			}
			info := c.Info()
			if info.Signal != test.signal || info.HasFaultAddress != test.fault || test.fault && info.FaultAddress != 0x1234 {
				t.Errorf("signal %d, fault %v at %#x", info.Signal, info.HasFaultAddress, info.FaultAddress)
			}
			var stop *trace.Stop
			switch test.stop {
			case "":
			case sdk.StopMathError: // its address is that of the instruction
				stop = &trace.Stop{Reason: test.stop}
			default:
				stop = &trace.Stop{Reason: test.stop, Address: 0x1234, HasAddress: true}
			}
			if diff := cmp.Diff([]*trace.Stop{stop, nil}, []*trace.Stop{c.Threads()[0].Stop, c.Threads()[1].Stop}); diff != "" {
				t.Errorf("why the threads stopped (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProcessInfoOfOld32BitArchitecturesHasShortUserIDs(t *testing.T) {
	b := &builder{numbers: numbers{little64().order, false}, typ: elf.ET_CORE, machine: elf.EM_386}
	short := make([]byte, 124)
	b.order.PutUint32(short[12:], 5)
	copy(short[28:], "old")
	for name, data := range map[string][]byte{"old": short, "new": b.info(5, "new")} {
		notes := b.note(nil, coreOwner, ntPRSTATUS, b.status(5, 0, 1, 2))
		notes = b.note(notes, coreOwner, ntPRPSINFO, data)
		b.parts = []part{{typ: elf.PT_NOTE, data: notes}}
		c := openBytes(t, b.numbers, b.core())
		if got := c.Threads()[0].Name; got != name {
			t.Errorf("name %q, want %q", got, name)
		}
	}
}

func TestDamagedNotes(t *testing.T) {
	b := little64()
	status := b.note(nil, coreOwner, ntPRSTATUS, b.status(1, 11, 0x100, 0))
	for name, test := range map[string]struct {
		parts   []part
		threads []threadView
		problem string
	}{
		"none":       {[]part{{typ: elf.PT_LOAD, data: []byte("x")}}, nil, "the core has no notes"},
		"no threads": {[]part{{typ: elf.PT_NOTE, data: b.note(nil, coreOwner, ntPRPSINFO, b.info(1, "x"))}}, nil, "no NT_PRSTATUS note"},
		"NT_PRSTATUS without process ID": {[]part{{typ: elf.PT_NOTE, data: b.note(nil, coreOwner, ntPRSTATUS, make([]byte, 30))}},
			[]threadView{{Problem: "NT_PRSTATUS at offset 0x78 has 30 bytes, expected at least 36"}}, "NT_PRSTATUS at offset 0x78 has 30 bytes"},
		"NT_PRSTATUS without PC": {[]part{{typ: elf.PT_NOTE, data: b.note(nil, coreOwner, ntPRSTATUS, b.status(3, 0, 0, 0)[:116])}},
			[]threadView{{ID: "3", Problem: "NT_PRSTATUS at offset 0x78 has 116 bytes, which do not reach to the program counter"}}, ""},
		"owner too long": {[]part{{typ: elf.PT_NOTE, data: append(append([]byte(nil), status...), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0)}},
			[]threadView{{ID: "1", Crashed: true, Signal: 11, PC: 0x100}}, "is cut"},
		"data too long": {[]part{{typ: elf.PT_NOTE, data: append(append([]byte(nil), status...), 0, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff, 1, 0, 0, 0)}},
			[]threadView{{ID: "1", Crashed: true, Signal: 11, PC: 0x100}}, "is cut"},
		"half a header": {[]part{{typ: elf.PT_NOTE, data: append(append([]byte(nil), status...), 1, 2, 3)}},
			[]threadView{{ID: "1", Crashed: true, Signal: 11, PC: 0x100}}, "note header cut: 3 bytes"},
		"padding at the end": {[]part{{typ: elf.PT_NOTE, data: append(append([]byte(nil), status...), 0, 0, 0, 0)}},
			[]threadView{{ID: "1", Crashed: true, Signal: 11, PC: 0x100}}, ""},
		"the same bytes twice": {[]part{{typ: elf.PT_NOTE, data: status}, {typ: elf.PT_NOTE, at: 64 + 2*56, claim: uint64(len(status))}},
			[]threadView{{ID: "1", Crashed: true, Signal: 11, PC: 0x100}}, "overlap those of program header 0"},
		"overlapping by half": {[]part{{typ: elf.PT_NOTE, at: 64 + 2*56 + 100, claim: 100}, {typ: elf.PT_NOTE, data: status}},
			[]threadView{{ID: "1", Crashed: true, Signal: 11, PC: 0x100}}, "the notes of program header 0 at offset 0x114 overlap those of program header 1"},
		"past the end": {[]part{{typ: elf.PT_NOTE, data: status}, {typ: elf.PT_NOTE, at: 1 << 40, claim: 100}},
			[]threadView{{ID: "1", Crashed: true, Signal: 11, PC: 0x100}}, "before the notes of program header 1 at offset 0x10000000000"},
		"two segments": {[]part{{typ: elf.PT_NOTE, data: status}, {typ: elf.PT_NOTE, data: b.note(nil, coreOwner, ntPRSTATUS, b.status(2, 11, 0x200, 0))}},
			[]threadView{{ID: "1", Crashed: true, Signal: 11, PC: 0x100}, {ID: "2", PC: 0x200}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := little64()
			b.parts = test.parts
			c := openBytes(t, b.numbers, b.core())
			if diff := cmp.Diff(test.threads, views(c)); diff != "" {
				t.Error(diff)
			}
			problems := problemsOf(c)
			if (test.problem == "") != (problems == "") || !strings.Contains(problems, test.problem) {
				t.Errorf("problems %q, want %q", problems, test.problem)
			}
		})
	}
}

func TestADescriptionWithoutRegisterSets(t *testing.T) {
	b := little64()
	b.parts = []part{{typ: elf.PT_NOTE, data: b.note(nil, coreOwner, ntPRSTATUS, b.status(3, 0, 0, 0))}}
	d := testDescription(b.numbers)
	d.RegisterSets = nil
	c := openBytes(t, b.numbers, b.core(), Options{Describe: describe(d)})
	want := "the description of " + d.Name + " has no register set for NT_PRSTATUS: a core note of CORE, type 1"
	if got := c.Threads()[0].Problem; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	b := little64()
	status := b.note(nil, coreOwner, ntPRSTATUS, b.status(1, 11, 0x100, 0))
	b.parts = []part{{typ: elf.PT_NOTE, data: status}}
	b.parts[0].data = b.note(status, coreOwner, ntAUXV, b.words(nil, 0, 0))
	for range 60000 {
		b.parts = append(b.parts, part{typ: elf.PT_NOTE, at: 64 + 60001*56, claim: uint64(len(status))})
	}
	c := openBytes(t, b.numbers, b.core())
	problems := c.Info().Problems
	if len(problems) != maxProblems+1 || !strings.Contains(problems[maxProblems], "59900 more problems") {
		t.Errorf("%d problems, the last %q", len(problems), problems[len(problems)-1])
	}
	if len(c.Threads()) != 1 {
		t.Errorf("%d threads", len(c.Threads()))
	}
}

func TestFileNote(t *testing.T) {
	n := little64().numbers
	good := n.fileNote(4096,
		fileRange{start: 0x5000, end: 0x6000, offset: 0x2000, path: "/b"},
		fileRange{start: 0x1000, end: 0x3000, offset: 0, path: "/a"})
	bytes := n.fileNote(1, fileRange{start: 0x5000, end: 0x6000, offset: 0x2000, path: "/b"})
	for name, test := range map[string]struct {
		n       numbers
		data    []byte
		want    []fileRange
		problem string
	}{
		"kernel":          {n, good, []fileRange{{start: 0x1000, end: 0x3000, path: "/a"}, {start: 0x5000, end: 0x6000, offset: 0x2000, path: "/b"}}, ""},
		"gdb":             {n, bytes, []fileRange{{start: 0x5000, end: 0x6000, offset: 0x2000, path: "/b"}}, ""},
		"32-bit":          {big32().numbers, big32().fileNote(4096, fileRange{start: 0x1000, end: 0x2000, offset: 0x3000, path: "/x"}), []fileRange{{start: 0x1000, end: 0x2000, offset: 0x3000, path: "/x"}}, ""},
		"empty":           {n, nil, nil, "NT_FILE has 0 bytes, expected at least 16"},
		"no names":        {n, good[:16+48], nil, "NT_FILE has names for 0 of its 2 mappings"},
		"name cut":        {n, good[:len(good)-1], []fileRange{{start: 0x5000, end: 0x6000, offset: 0x2000, path: "/b"}}, "NT_FILE has names for 1 of its 2 mappings"},
		"count too high":  {n, n.words(nil, 1<<60, 4096, 1, 2, 3), nil, "says 1152921504606846976 mappings"},
		"upside down":     {n, n.fileNote(1, fileRange{start: 9, end: 8, path: "x"}), nil, "1 mappings of NT_FILE are impossible, the first is mapping 0: 0x9 to 0x8"},
		"offset too high": {n, append(n.words(nil, 1, 4096, 0x1000, 0x2000, 1<<60), "x\x00"...), nil, "are impossible"},
		"overlap": {n, n.fileNote(1, fileRange{start: 1, end: 9, path: "x"}, fileRange{start: 8, end: 10, path: "y"}),
			[]fileRange{{start: 1, end: 9, path: "x"}}, "1 mappings of NT_FILE overlap"},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := readFileNote(test.n, test.data)
			if diff := cmp.Diff(test.want, got.list, cmp.AllowUnexported(fileRange{})); diff != "" && len(test.want)+len(got.list) > 0 {
				t.Error(diff)
			}
			if all := strings.Join(problems, "\n"); (test.problem == "") != (all == "") || !strings.Contains(all, test.problem) {
				t.Errorf("problems %q, want %q", all, test.problem)
			}
		})
	}
}

// A plugin may keep the notes longer than the core is open.
func TestNotesForPluginsAreCopies(t *testing.T) {
	b := little64()
	b.parts = []part{{typ: elf.PT_NOTE, data: b.note(nil, "VENDOR", 1, []byte("abcd"))}}
	data := b.core()
	c := openBytes(t, b.numbers, data, Options{Finder: object.Finder{}})
	clear(data)
	if got := string(c.Info().Notes[0].Data); got != "abcd" {
		t.Errorf("%q", got)
	}
}

func TestCoreThatSaysNothingOfCode(t *testing.T) {
	c := openBytes(t, little64().numbers, smallCore(little64()))
	if p := strings.Join(c.Info().Problems, "\n"); p != "synthetic.core: "+noCode {
		t.Errorf("problems %q", p)
	}
}
