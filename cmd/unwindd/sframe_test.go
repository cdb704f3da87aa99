// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// sframeVersion2 makes a section of version 2 out of the linker's, which is of
// version 1 at an address. The new one has address 0: objcopy adds it as a
// section that is not loaded.
func sframeVersion2(t *testing.T, section []byte, address uint64) []byte {
	t.Helper()
	const header, before, after = 28, 17, 20
	o := binary.LittleEndian
	if len(section) < header || o.Uint16(section) != 0xdee2 || section[2] != 1 || section[7] != 0 || o.Uint32(section[20:]) != 0 {
		t.Fatalf("the linker wrote another .sframe than that of version 1: % x", section[:min(header, len(section))])
	}
	count := int(o.Uint32(section[8:]))
	out := append([]byte(nil), section[:header]...)
	out[2] = 2
	o.PutUint32(out[24:], uint32(count*after))
	for i := range count {
		fde := append([]byte(nil), section[header+before*i:header+before*(i+1)]...)
		o.PutUint32(fde, o.Uint32(fde)+uint32(address))
		block := byte(0)
		if fde[16]&0x10 != 0 {
			block = 16 // an entry of the PLT
		}
		out = append(append(out, fde...), block, 0, 0)
	}
	return append(out, section[header+before*count:]...)
}

// withoutCFI copies a program without its DWARF call frame information and with
// an .sframe of the version given; 0: without any.
func withoutCFI(t *testing.T, exe string, version int) string {
	t.Helper()
	oracle.Tools(t, "objcopy")
	bare := filepath.Join(t.TempDir(), filepath.Base(exe))
	args := []string{"--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", "--remove-section=.debug_frame"}
	if version != 1 {
		args = append(args, "--remove-section=.sframe")
	}
	if version == 2 {
		f, err := elf.Open(exe)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s := f.Section(".sframe")
		if s == nil {
			t.Fatalf("%s has no .sframe", exe)
		}
		data, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "sframe")
		if err := os.WriteFile(path, sframeVersion2(t, data, s.Addr), 0o600); err != nil {
			t.Fatal(err)
		}
		// A removed section cannot be added by the same command.
		oracle.Run(t, "objcopy", append(args, exe, bare)...)
		args, exe = []string{"--add-section=.sframe=" + path}, bare
	}
	oracle.Run(t, "objcopy", append(args, exe, bare)...)
	return bare
}

// calleesIn counts the frames, by how they were found, whose callee is in a
// module.
func calleesIn(r *report.Report, module string) map[string]int {
	counts := map[string]int{}
	for _, th := range r.Threads {
		var callee *report.Frame
		for i := range th.Frames {
			f := &th.Frames[i]
			if f.Inlined {
				continue
			}
			if callee != nil && callee.Module != nil && r.Modules[*callee.Module].Path == module {
				counts[f.FoundBy]++
			}
			callee = f
		}
	}
	return counts
}

// withoutStart leaves out what only .eh_frame knows of the C library's start
// code, which is in the program and was assembled without SFrame: its CFA.
func withoutStart(threads []report.Thread) []report.Thread {
	for _, th := range threads {
		for i := range th.Frames {
			if f := &th.Frames[i]; f.Function == "_start" {
				f.CFA, f.CFASpace = "", ""
			}
		}
	}
	return threads
}

// takeRegisters takes the registers out of the frames.
func takeRegisters(threads []report.Thread) (all []map[string]string) {
	for _, th := range threads {
		for i := range th.Frames {
			all = append(all, th.Frames[i].Registers)
			th.Frames[i].Registers = nil
		}
	}
	return all
}

// TestStacksBySFrameEqualThoseByEHFrame walks cores of a program whose frames
// have no call frame information but SFrame. A register may be unknown where
// .eh_frame knows it, and nothing may be another.
func TestStacksBySFrameEqualThoseByEHFrame(t *testing.T) {
	long(t)
	exe := subject.Build(t, "sframe")
	for name, core := range map[string]string{"crash": subject.Core(t, exe, "crash"), "wait": subject.LiveCore(t, exe, "wait")} {
		want := stackJSON(t, core, "--registers")
		threads := withoutStart(want.Threads)
		registers := takeRegisters(threads)
		byEHFrame := calleesIn(want, exe)
		if byEHFrame["cfi"] < 20 {
			t.Errorf("%s: %v frames by .eh_frame, expected 20 or more", name, byEHFrame)
		}
		for _, version := range []int{1, 2} {
			got := stackJSON(t, core, "--registers", "--exe", withoutCFI(t, exe, version))
			gotThreads := withoutStart(got.Threads)
			gotRegisters := takeRegisters(gotThreads)
			if diff := cmp.Diff(threads, gotThreads); diff != "" {
				t.Fatalf("%s, version %d: (-.eh_frame +.sframe)\n%s", name, version, diff)
			}
			bySFrame := calleesIn(got, exe)
			if diff := cmp.Diff(byEHFrame, bySFrame); diff != "" {
				t.Errorf("%s, version %d: callers of the program's frames (-.eh_frame +.sframe)\n%s", name, version, diff)
			}
			known, unknown := 0, 0
			for i := range registers {
				for register, value := range gotRegisters[i] {
					known++
					if registers[i][register] != value {
						t.Errorf("%s, version %d: frame %d of all: %s is %s, by .eh_frame %q", name, version, i, register, value, registers[i][register])
					}
				}
				unknown += len(registers[i]) - len(gotRegisters[i])
			}
			if unknown == 0 {
				t.Errorf("%s, version %d: all registers are known, those included that the format does not track", name, version)
			}
			for _, m := range got.Modules {
				if m.Path == exe && m.Problem != "" {
					t.Errorf("%s, version %d: problem %q", name, version, m.Problem)
				}
			}
			t.Logf("%s, version %d: callers of the program's frames, by how they were found: %v; %d registers equal, %d unknown", name, version, bySFrame, known, unknown)
		}
		// The comparison would not see an .sframe that is not used if the rows
		// read from the code were called cfi.
		if bare := calleesIn(stackJSON(t, core, "--exe", withoutCFI(t, exe, 0)), exe); bare["cfi"] != 0 {
			t.Errorf("%s: without any call frame information: %v", name, bare)
		}
	}
}

// TestDumpRowsListsSFrame holds the rows of .sframe against those that .eh_frame
// has for the same addresses.
func TestDumpRowsListsSFrame(t *testing.T) {
	exe := subject.Build(t, "sframe")
	type row struct {
		PC    string            `json:"pc"`
		CFA   string            `json:"cfa"`
		Rules map[string]string `json:"rules"`
	}
	type dump struct {
		FDEs []struct {
			Section, Start, End string
			Rows                []row
		}
		Problems []string
	}
	read := func(path string) (d dump) {
		stdout, stderr, status := unwindd(t, "dump", "rows", "--format", "json", path)
		if status != 0 {
			t.Fatalf("status %d\n%s", status, stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	byPC := map[string]row{}
	for _, f := range read(exe).FDEs {
		for _, r := range f.Rows {
			if f.Section == ".eh_frame" {
				byPC[r.PC] = r
			}
		}
	}
	rows := 0
	for _, f := range read(withoutCFI(t, exe, 2)).FDEs {
		if f.Section != ".sframe" {
			t.Fatalf("an entry of %s", f.Section)
		}
		for _, r := range f.Rows {
			// Where .eh_frame has no row of its own one of its rows goes on.
			want, ok := byPC[r.PC]
			if !ok || strings.HasPrefix(want.CFA, "expr") { // the PLT's
				continue
			}
			rows++
			if r.CFA != want.CFA || r.Rules["rip"] != want.Rules["rip"] {
				t.Errorf("%s: %v, .eh_frame has %v", r.PC, r, want)
			}
		}
	}
	if rows < 100 {
		t.Errorf("%d rows compared, expected 100 or more", rows)
	}
	t.Logf("%d rows", rows)
}
