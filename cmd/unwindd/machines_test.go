// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/bzip2"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
)

const machinesDir = "../../engine/internal/target/elfcore/testdata/machines"

// machineCore puts the core and the executable of a machine into a folder.
func machineCore(t *testing.T, name string) (core string) {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(filepath.Join(machinesDir, name+".core.bz2"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(bzip2.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.ReadFile(filepath.Join(machinesDir, name))
	if err != nil {
		t.Fatal(err)
	}
	core = filepath.Join(dir, name+".core")
	for path, b := range map[string][]byte{core: data, filepath.Join(dir, name): exe} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return core
}

// TestCoresOfMachinesWithoutArchitecture: what the core is of is the first thing
// said, with what would read it; the PCs and their names are there.
func TestCoresOfMachinesWithoutArchitecture(t *testing.T) {
	for name, frame := range map[string]string{
		"s390x": "0x0000000001001180 crash_here+0x0 in s390x",
	} {
		t.Run(name, func(t *testing.T) {
			core := machineCore(t, name)
			stdout, stderr, status := unwindd(t, "stack", core)
			if status != exitUnwalked {
				t.Errorf("status %d, expected %d", status, exitUnwalked)
			}
			mustSay(t, stderr, "nothing in it could be walked", "the registers of "+name+" cannot be read: no architecture plugin")
			lines := strings.Split(stdout, "\n")
			mustSay(t, lines[0], "elf-core "+core, "signal 11 (SIGSEGV)")
			after := lines[1:]
			if strings.HasPrefix(after[0], "null pointer") { // which the signal says, without registers
				after = after[1:]
			}
			mustSay(t, after[0], "problem:", "the process is of "+name+":", "named unwindd-arch-"+name+" ", "--plugin-dir")
			mustSay(t, stdout, frame, `"`+name+`", crashed`, "stopped: plugin-failed: the registers of "+name+" cannot be read")

			stdout, _, status = unwindd(t, "stack", "--format", "json", core)
			var r report.Report
			if err := json.Unmarshal([]byte(stdout), &r); err != nil || status != exitUnwalked {
				t.Fatalf("status %d, %v", status, err)
			}
			th := r.Threads[0]
			if len(th.Frames) != 1 || th.Frames[0].Function != "crash_here" || th.Frames[0].FoundBy != "context" || th.Arch != name ||
				th.Stopped.Reason != "plugin-failed" || r.Modules[0].Arch != name {
				t.Errorf("%+v of %+v", th, r.Modules)
			}

			// A snapshot would have nothing that anybody could walk.
			taken := filepath.Join(t.TempDir(), "taken.snapshot")
			_, stderr, status = unwindd(t, "snapshot", core, "-o", taken)
			if _, err := os.Stat(taken); status != exitUnwalked || err == nil {
				t.Errorf("snapshot: status %d, %v\n%s", status, err, stderr)
			}
		})
	}
}

// gpuCore is the crash example's core with the state of graphics processors in
// it, of a kind that nobody knows, or that state alone, as a core of machine EM_AMDGPU.
func gpuCore(t *testing.T, alone bool) string {
	t.Helper()
	order := binary.LittleEndian
	body := order.AppendUint64(nil, 1) // version
	body = order.AppendUint32(order.AppendUint32(body, 1), 18)
	body = order.AppendUint64(body, 16)
	for _, n := range []uint32{1, 120, 2, 64} {
		body = order.AppendUint32(body, n)
	}
	body = append(body, make([]byte, 16+120+2*64)...)
	note := order.AppendUint32(nil, 7)
	note = order.AppendUint32(note, uint32(len(body)))
	note = append(order.AppendUint32(note, 33), "AMDGPU\x00\x00"...)
	note = append(note, body...)

	core, err := os.ReadFile(filepath.Join(crashDir, "server.core"))
	if err != nil {
		t.Fatal(err)
	}
	header := core[:64:64]
	count := int(order.Uint16(header[56:]))
	programs := core[64 : 64+56*count : 64+56*count]
	if alone {
		core, programs, count = nil, nil, 0
		order.PutUint16(header[18:], 0xe0)
		header[7] = 0x40
	}
	// The program headers move behind everything else, with one more of a note.
	at := uint64(64)
	if !alone {
		at = uint64(len(core))
	}
	order.PutUint64(header[32:], at)
	order.PutUint16(header[56:], uint16(count+1))
	program := make([]byte, 56)
	order.PutUint32(program, 4)
	order.PutUint64(program[8:], at+uint64(56*(count+1)))
	order.PutUint64(program[32:], uint64(len(note)))
	order.PutUint64(program[48:], 4)
	file := append([]byte(nil), header...)
	if !alone {
		file = append(file, core[64:]...)
	}
	file = append(append(append(file, programs...), program...), note...)
	path := filepath.Join(t.TempDir(), "server.core")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCoresWithGraphicsProcessors(t *testing.T) {
	unified := gpuCore(t, false)
	copyFile(t, "server", filepath.Join(filepath.Dir(unified), "server"), nil)
	stdout, stderr, status := unwindd(t, "stack", unified)
	if status != exitDone {
		t.Errorf("with a process: status %d\n%s", status, stderr)
	}
	mustSay(t, strings.SplitN(stdout, "\n\n", 2)[0], "rocm-core", "signal 11", "problem:",
		"agent 1 is a gfx000 (version 0), of which nothing is known, expected one of", "its waves are left out", "is where to ask for it", "agent 1: gfx000, 2 queues")
	mustSay(t, stdout, "start_thread", "read_body")

	alone := gpuCore(t, true)
	stdout, stderr, status = unwindd(t, "stack", alone)
	if status != exitUnwalked {
		t.Errorf("alone: status %d\n%s", status, stderr)
	}
	mustSay(t, stdout, "rocm-core "+alone, "agent 1 is a gfx000 (version 0), of which nothing is known", "agent 1: gfx000, 2 queues")
	mustSay(t, stderr, "nothing in it could be walked: it has graphics processors alone")
	if strings.Contains(stdout, "NT_PRSTATUS") {
		t.Errorf("what it cannot have is missed:\n%s", stdout)
	}
}

// TestCoresWithoutThreadsCouldNotBeRead: of 100 bytes of a core nothing is known.
func TestCoresWithoutThreadsCouldNotBeRead(t *testing.T) {
	core := filepath.Join(t.TempDir(), "cut.core")
	copyFile(t, "server.core", core, func(b []byte) []byte { return b[:100] })
	stdout, stderr, status := unwindd(t, "stack", core)
	if status != exitInput {
		t.Errorf("status %d, expected %d", status, exitInput)
	}
	mustSay(t, stdout, "problem:", "the file ends at offset 0x64, within the program headers")
	mustSay(t, stderr, "no threads: "+core+": the file ends at offset 0x64")
	if _, stderr, status = unwindd(t, "snapshot", core, "-o", core+".snapshot"); status != exitInput {
		t.Errorf("snapshot: status %d\n%s", status, stderr)
	}
}
