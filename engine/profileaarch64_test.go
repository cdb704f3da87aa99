// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/sdk"
)

// arm64Registers is what perf asks for by --call-graph dwarf on arm64: x0 to x29, lr, sp
// and pc, and where there is SVE the length of vectors (arch/arm64/include/uapi/asm/perf_regs.h).
const (
	arm64Registers = 1<<33 - 1
	arm64VG        = 1 << 46
)

// TestProfileOfAArch64 walks samples that are made of the state of a process under qemu, as
// perf has them on arm64, and wants the stack that the core of the same moment has: with
// return addresses that are signed and not, for samples do not say which bits are a
// signature.
func TestProfileOfAArch64(t *testing.T) {
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64", "sh")
	for name, flags := range map[string][]string{
		"plain":              {"-O1", "-static"},
		"signed":             {"-O1", "-static", "-mbranch-protection=pac-ret+leaf"},
		"without rows":       {"-O1", "-static", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"},
		"signed, with debug": {"-O2", "-g", "-static", "-mbranch-protection=standard", "-fno-optimize-sibling-calls"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			exe := filepath.Join(dir, "subject")
			oracle.Run(t, "aarch64-linux-gnu-gcc", append(flags, "-o", exe, subject.Source(t, "aarch64crash.c"))...)
			cmd := exec.Command("sh", "-c", "ulimit -c unlimited && exec qemu-aarch64 -cpu max ./subject data")
			cmd.Dir = dir
			_ = cmd.Run() // it crashes
			cores, _ := filepath.Glob(filepath.Join(dir, "qemu_*.core"))
			if len(cores) != 1 {
				t.Fatalf("%d cores", len(cores))
			}
			e := newEngineOf(t, aarch64.New(), Options{Exe: exe})
			core, err := e.Open(cores[0])
			if err != nil {
				t.Fatal(err)
			}
			defer core.Close()
			var want []string
			for _, f := range core.Walk(t.Context(), core.Crashed()).Frames {
				want = append(want, physicalName(f.Symbols))
			}
			for _, mask := range []uint64{arm64Registers, arm64Registers | arm64VG} {
				recording := filepath.Join(dir, "perf.data")
				writeARM64(t, recording, exe, core, mask)
				p, err := e.Profile(t.Context(), recording, trace.ProfileOptions{})
				if err != nil {
					t.Fatal(err)
				}
				checkParts(t, e, recording, trace.ProfileOptions{}, p)
				unchecked := exe + ": the build ID could not be checked" // nothing tells it in the recording
				if len(p.Samples) != 1 || len(p.Problems) != 1 || !strings.HasPrefix(p.Problems[0], unchecked) {
					t.Fatalf("%d samples, problems %q", len(p.Samples), p.Problems)
				}
				var got []string
				for _, at := range p.StackFrames(nil, p.Samples[0].Stack) {
					got = append(got, physicalName(p.Frames[at].Symbols))
				}
				if diff := cmp.Diff(want, got); diff != "" || !slices.Contains(want, "main") || !slices.Contains(want, "_start") {
					t.Errorf("mask %#x, stopped %+v (-core +sample):\n%s", mask, p.Stops[p.Samples[0].Stop], diff)
				}
			}
		})
	}
}

// physicalName names the physical function that symbols are of.
func physicalName(symbols []trace.Symbol) string {
	if len(symbols) == 0 {
		return "?"
	}
	return symbols[len(symbols)-1].Function
}

// writeARM64 writes a recording with one sample: the state of the thread that crashed.
func writeARM64(t *testing.T, path, exe string, core *Target, mask uint64) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := perfdata.NewWriter(file, perfdata.WriterOptions{Event: "cpu-clock", Arch: "aarch64", OSRelease: "6.1.0", Registers: mask, ClockID: 1})
	const pid, from, now, execute = 100, 1, 2, 5
	w.Comm(pid, pid, from, "subject", true)
	image, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	for _, p := range image.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			w.Map(pid, from, &perfdata.Mapping{Start: p.Vaddr &^ 0xfff, End: (p.Vaddr + p.Memsz + 0xfff) &^ 0xfff, Offset: p.Off &^ 0xfff, Path: exe, Prot: execute})
		}
	}
	thread := core.Crashed()
	s := &perfdata.Sample{PID: pid, TID: pid, Time: now, Period: 1, Registers: perfdata.Registers{ABI: perfdata.Registers64, Mask: mask}}
	var stackPointer uint64
	for number := range uint32(33) {
		v, ok := thread.Registers.Uint64(number, sdk.LittleEndian)
		if !ok {
			t.Fatalf("register %d is not in the core", number)
		}
		s.Registers.Values = binary.LittleEndian.AppendUint64(s.Registers.Values, v)
		switch number {
		case 31:
			stackPointer = v
		case 32:
			s.IP = v
		}
	}
	if mask&arm64VG != 0 {
		s.Registers.Values = binary.LittleEndian.AppendUint64(s.Registers.Values, 4)
	}
	stack := make([]byte, perfdata.MaxSampleStack)
	n, _ := core.process.State().ReadMemory(locexpr.DefaultSpace, stackPointer, stack)
	s.Stack = stack[:n]
	w.Sample(s)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
