// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/subject"
	"github.com/unwindd/unwindd/sdk"
)

// A stepped is a program that qemu executes one instruction after the other, as gdb's remote
// protocol asks it to (GDB manual, appendix E).
type stepped struct {
	t      *testing.T
	conn   net.Conn
	input  *bufio.Reader
	layout *remoteLayout
	values []byte // of the registers, as the answer to the packet g has them
}

// remoteLayout has the places of registers in the answer to the packet g, which has their
// bytes in the order of memory.
type remoteLayout struct {
	general           int // r0; the others follow
	count             int
	pc, link          int // link is a copy of a general register on s390x
	pcNumber, spIndex uint32
	linkNumber        uint32
	floats            int // the number that qemu gives f0; 0: functions keep none in them
}

// remoteLayouts are qemu 7.2's.
var remoteLayouts = map[string]*remoteLayout{
	"ppc64le": {general: 0, count: 32, pc: 256, link: 276, pcNumber: 4099, spIndex: 1, linkNumber: 65},
	"ppc64":   {general: 0, count: 32, pc: 256, link: 276, pcNumber: 4099, spIndex: 1, linkNumber: 65},
	"s390x":   {general: 16, count: 16, pc: 8, link: 16 + 8*14, pcNumber: 65, spIndex: 15, linkNumber: 14, floats: 35},
}

// s390xFloats are the numbers of registers of floating point numbers, in the order of DWARF's
// from 16 on.
var s390xFloats = [16]int{0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15}

func (m *crossMachine) step(t *testing.T, exe string, args ...string) *stepped {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "gdb")
	qemu := exec.Command("qemu-"+m.machine, append([]string{"-cpu", m.cpu, "-g", socket, exe}, args...)...)
	if err := qemu.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { qemu.Process.Kill(); qemu.Wait() })
	s := &stepped{t: t, layout: remoteLayouts[m.machine]}
	for range 600 {
		var err error
		if s.conn, err = net.Dial("unix", socket); err == nil {
			t.Cleanup(func() { s.conn.Close() })
			s.input = bufio.NewReader(s.conn)
			s.request("qXfer:features:read:target.xml:0,ffb") // it has no registers before
			s.read()
			return s
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("qemu opens no socket")
	return nil
}

// request sends a packet and returns the answer.
func (s *stepped) request(packet string) string {
	s.t.Helper()
	sum := byte(0)
	for i := range len(packet) {
		sum += packet[i]
	}
	_, err := fmt.Fprintf(s.conn, "$%s#%02x", packet, sum)
	if err == nil {
		_, err = s.input.ReadBytes('$') // the bytes before it acknowledge the packet
	}
	var answer []byte
	if err == nil {
		answer, err = s.input.ReadBytes('#')
	}
	if err == nil {
		_, err = s.input.Discard(2)
	}
	if err == nil {
		_, err = s.conn.Write([]byte("+"))
	}
	if err != nil {
		s.t.Fatalf("packet %s: %v", packet, err)
	}
	return string(answer[:len(answer)-1])
}

func (s *stepped) bytes(packet string) []byte {
	s.t.Helper()
	answer := s.request(packet)
	b, err := hex.DecodeString(answer)
	if err != nil {
		s.t.Fatalf("packet %s: %q", packet, answer)
	}
	return b
}

func (s *stepped) read() { s.values = s.bytes("g") }

// sample is the state before the next instruction, with the stack up to its end.
func (s *stepped) sample(arch string, modules []*target.Module, size uint64, word func(offset int) uint64) *walk.Sample {
	const below = 512 // functions of POWER restore registers from there (ELFv2, 2.2.2.4)
	out := &walk.Sample{Sample: trace.Sample{Arch: arch, StackStart: word(s.layout.general+8*int(s.layout.spIndex)) - below}, Loaded: modules}
	size += below
	for r := range s.layout.count {
		out.Registers.Set(uint32(r), s.values[s.layout.general+8*r:][:8])
	}
	out.Registers.Set(s.layout.linkNumber, s.values[s.layout.link:][:8])
	out.Registers.Set(s.layout.pcNumber, s.values[s.layout.pc:][:8])
	for i, n := range s390xFloats {
		if s.layout.floats != 0 {
			out.Registers.Set(uint32(16+i), s.bytes(fmt.Sprintf("p%x", s.layout.floats+n)))
		}
	}
	for at := uint64(0); at < size; at += 1024 { // qemu's packets are no larger
		out.Stack = append(out.Stack, s.bytes(fmt.Sprintf("m%x,%x", out.StackStart+at, min(1024, size-at)))...)
	}
	return out
}

// A call is in progress: the address that it returns to, and the stack pointer of the caller.
type callInProgress struct{ back, sp uint64 }

// TestEveryInstructionOfOtherABIs executes programs of POWER and s390x one instruction after
// the other, keeps the calls in progress, and holds the stack before each instruction against
// them. Wrong is a return address that no call has; unknown is a stack that ends too early. No
// frame may be a guess, except in programs without symbols: there the bounds of functions are not
// known, and no frame that is not marked may be wrong.
func TestEveryInstructionOfOtherABIs(t *testing.T) {
	t.Parallel()
	long(t)
	const bare = "-O2 -fno-asynchronous-unwind-tables -fno-unwind-tables"
	for _, m := range crossMachines {
		oracle.Tools(t, m.triple+"-gcc", "qemu-"+m.machine)
		for name, flags := range map[string]string{
			"O0": "-O0", "O2": "-O2", "without call frame information": bare, "without symbols": bare + " -s",
		} {
			t.Run(m.machine+" "+name, func(t *testing.T) {
				if name != "O2" && name != "without symbols" {
					proof.Only(t)
				}
				t.Parallel()
				exe := filepath.Join(t.TempDir(), "subject")
				oracle.Run(t, m.triple+"-gcc", append(strings.Fields("-w -DBARE -ffreestanding -fno-stack-protector -fno-pie -no-pie -nostdlib -static "+flags),
					"-o", exe, subject.Source(t, "abi.c"), "-lgcc")...)
				m.followCalls(t, exe, name == "without symbols")
			})
		}
	}
}

func (m *crossMachine) followCalls(t *testing.T, exe string, mayGuess bool) {
	d, err := m.arch.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{NoSymbols: true, Plugins: plugin.Options{InProcess: []sdk.Architecture{m.arch}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	file, err := object.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	module := &target.Module{Module: trace.Module{Path: exe, Arch: m.machine, File: exe}, Object: file}
	for _, p := range file.Segments() {
		module.Segments = append(module.Segments, trace.Segment{Address: p.Address, Size: p.MemSize, Start: p.Address, Executable: p.Executable()})
	}
	s := m.step(t, exe, "sorted")
	word := func(offset int) uint64 {
		if d.ByteOrder == sdk.BigEndian {
			return binary.BigEndian.Uint64(s.values[offset:])
		}
		return binary.LittleEndian.Uint64(s.values[offset:])
	}
	const most, room = 6000, 4096
	end := word(s.layout.general+8*int(s.layout.spIndex)) + 64
	var calls []callInProgress
	steps, counts := 0, map[stackVerdict]int{}
	for ; steps < most; steps++ {
		pc, sp := word(s.layout.pc), word(s.layout.general+8*int(s.layout.spIndex))
		state := s.sample(m.machine, []*target.Module{module}, min(end-sp, room), word)
		tt := e.Attach(state)
		stack := tt.Walk(t.Context(), state.Thread())
		want := []uint64{pc}
		for _, c := range slices.Backward(calls) {
			want = append(want, c.back)
		}
		verdict := judgeStack(stack, want)
		if counts[verdict]++; verdict != rightStack && counts[verdict] < 5 && (verdict == wrongStack || !mayGuess) {
			t.Logf("at %#x: %s, %d frames of %d, stopped %+v", pc, verdict, len(stack.Frames), len(want), stack.Stopped)
		}
		tt.Close()
		code := s.bytes(fmt.Sprintf("m%x,6", pc))
		if answer := s.request("s"); !strings.HasPrefix(answer, "T05") {
			break // it crashed
		}
		s.read()
		next, back := word(s.layout.pc), word(s.layout.link)
		after := word(s.layout.general + 8*int(s.layout.spIndex))
		length := uint64(4)
		if d.MaxInstruction > 4 {
			length = [4]uint64{2, 4, 4, 6}[code[0]>>6]
		}
		switch {
		case back == pc+length && next != back:
			calls = append(calls, callInProgress{back, after})
		case len(calls) > 0 && next == calls[len(calls)-1].back && after == calls[len(calls)-1].sp:
			calls = calls[:len(calls)-1]
		}
	}
	t.Logf("%d instructions, stacks: %v; %d calls at the end", steps, counts, len(calls))
	if counts[wrongStack] > 0 || steps < 200 || len(calls) < 7 || !mayGuess && len(counts) > 1 || counts[missedStack] > steps/10 {
		t.Errorf("expected none wrong, 200 instructions at least, and 7 calls at the end; with symbols all right, else at most a tenth wrong by guesses")
	}
}

// A stackVerdict is the outcome of holding a stack against the calls in progress.
type stackVerdict string

const (
	rightStack   stackVerdict = "right"
	guessedStack stackVerdict = "right, by guesses"
	missedStack  stackVerdict = "wrong, and marked as a guess"
	shortStack   stackVerdict = "too short"
	wrongStack   stackVerdict = "wrong"
)

// judgeStack compares the PCs of a stack with the return addresses of the calls in progress. A frame is marked
// if it was guessed, or found through one that was.
func judgeStack(stack *trace.Stack, want []uint64) stackVerdict {
	isMarked := false
	for i := range stack.Frames {
		f := &stack.Frames[i]
		isMarked = isMarked || f.FoundBy.IsGuess()
		if isMarked && !f.FoundBy.IsGuess() && !f.RestsOnGuess {
			return wrongStack
		}
		switch isRight := i < len(want) && f.PC == want[i]; {
		case !isRight && isMarked:
			return missedStack
		case !isRight:
			return wrongStack
		}
	}
	switch {
	case len(stack.Frames) < len(want) && stack.Stopped.Reason == trace.StopOutermost && !isMarked:
		return wrongStack // it says that nothing called the last frame
	case len(stack.Frames) < len(want):
		return shortStack
	case isMarked:
		return guessedStack
	}
	return rightStack
}
