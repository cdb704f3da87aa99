// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/sdk"
)

// emulated is a process of AArch64 that qemu executes, instruction by instruction, as gdb's
// remote protocol asks it to (GDB manual, appendix E). Its memory is that of qemu, at the same
// addresses.
type emulated struct {
	cmd    *exec.Cmd
	conn   net.Conn
	input  *bufio.Reader
	mem    *os.File
	x      [33]uint64 // x0 to x30, sp, pc
	code   map[string][]elf.ProgHeader
	thread string // the one that is stepped
}

// startEmulated starts a program, which stands at its first instruction.
func startEmulated(argv, env []string, dir string) (*emulated, error) {
	socket := filepath.Join(dir, "gdb.sock")
	_ = os.Remove(socket)
	e := &emulated{cmd: exec.Command("qemu-aarch64", append([]string{"-L", "/usr/aarch64-linux-gnu", "-g", socket}, argv...)...), code: map[string][]elf.ProgHeader{}}
	e.cmd.Dir, e.cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH")}, env...) // start-up reads each variable
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := e.cmd.Start(); err != nil {
		return nil, err
	}
	var err error
	for range 500 {
		if e.conn, err = net.Dial("unix", socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err == nil {
		e.input = bufio.NewReader(e.conn)
		e.mem, err = os.Open(fmt.Sprintf("/proc/%d/mem", e.cmd.Process.Pid))
	}
	if err == nil {
		err = e.begin()
	}
	if err != nil {
		e.end()
		return nil, err
	}
	return e, nil
}

// begin asks where the process stands, and whether its memory is qemu's.
func (e *emulated) begin() error {
	if _, err := e.ask("?"); err != nil {
		return err
	}
	thread, err := e.ask("qC")
	if err != nil {
		return err
	}
	e.thread = strings.TrimPrefix(thread, "QC")
	if err := e.readRegisters(); err != nil {
		return err
	}
	text, err := e.ask(fmt.Sprintf("m%x,10", e.x[32]))
	if err != nil {
		return err
	}
	var ours [16]byte
	if e.read(e.x[32], ours[:]); hex.EncodeToString(ours[:]) != text {
		return fmt.Errorf("memory at %#x is %x, and qemu says %s: it is elsewhere", e.x[32], ours, text)
	}
	return nil
}

func (e *emulated) end() {
	if e.conn != nil {
		_ = e.conn.Close()
	}
	if e.mem != nil {
		_ = e.mem.Close()
	}
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

// ask sends a packet and gives the answer.
func (e *emulated) ask(packet string) (string, error) {
	sum := byte(0)
	for i := range len(packet) {
		sum += packet[i]
	}
	if _, err := fmt.Fprintf(e.conn, "$%s#%02x", packet, sum); err != nil {
		return "", err
	}
	if _, err := e.input.ReadBytes('$'); err != nil { // the bytes before it acknowledge the packet
		return "", err
	}
	answer, err := e.input.ReadBytes('#')
	if err != nil {
		return "", err
	}
	if _, err := e.input.Discard(2); err != nil {
		return "", err
	}
	_, err = e.conn.Write([]byte{'+'})
	return string(bytes.TrimSuffix(answer, []byte{'#'})), err
}

// step executes an instruction, with a signal that is to be delivered before it; "": none.
// next is the signal that is to be delivered with the next step, as gdb numbers them. The other
// threads go on meanwhile.
func (e *emulated) step(signal string) (next string, err error) {
	packet := "vCont;s:" + e.thread + ";c"
	if signal != "" {
		packet = "vCont;S" + signal + ":" + e.thread + ";c"
	}
	answer, err := e.ask(packet)
	if err != nil {
		return "", err
	}
	if len(answer) < 3 || answer[0] != 'T' && answer[0] != 'S' {
		return "", errEnded
	}
	const trap = "05"
	if answer[1:3] != trap {
		next = answer[1:3]
	}
	return next, e.readRegisters()
}

// runToEntry lets the dynamic linker do its work, and stops at the entry of the executable.
func (e *emulated) runToEntry(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	at := f.Entry
	isMoved := f.Type == elf.ET_DYN
	_ = f.Close()
	text, err := e.maps()
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); isMoved && len(f) > 5 && f[5] == path {
			var start uint64
			_, err = fmt.Sscanf(f[0], "%x", &start)
			at += start
			break
		}
	}
	for _, packet := range []string{fmt.Sprintf("Z0,%x,4", at), "c", fmt.Sprintf("z0,%x,4", at)} {
		if _, err := e.ask(packet); err != nil {
			return err
		}
	}
	if err = errors.Join(err, e.readRegisters()); err == nil && e.x[32] != at {
		err = fmt.Errorf("it stands at %#x, not at its entry %#x", e.x[32], at)
	}
	return err
}

// errRegisters says that qemu's answer was no registers.
var errRegisters = errors.New("qemu gave no registers")

func (e *emulated) readRegisters() error {
	text, err := e.ask("g")
	if err != nil {
		return err
	}
	var raw [33 * 8]byte
	if len(text) < 2*len(raw) {
		return errRegisters
	}
	if _, err := hex.Decode(raw[:], []byte(text[:2*len(raw)])); err != nil {
		return err
	}
	for i := range e.x {
		e.x[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return nil
}

func (e *emulated) arch() string { return "aarch64" }

func (e *emulated) position() (pc, sp uint64) { return e.x[32], e.x[31] }

// registers are x0 to x30, sp and pc, whose DWARF numbers are 0 to 32.
func (e *emulated) registers() (r sdk.Registers) {
	for i, v := range e.x {
		r.Set(uint32(i), binary.LittleEndian.AppendUint64(nil, v)) //nolint:gosec // below 33
	}
	return r
}

func (e *emulated) read(address uint64, buf []byte) int {
	n, _ := e.mem.ReadAt(buf, int64(address)) //nolint:gosec // its bits
	return max(n, 0)
}

func (e *emulated) word(address uint64) (uint64, bool) {
	var b [8]byte
	if e.read(address, b[:]) < len(b) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// maps returns the mappings of the process. qemu maps no code of it as executable, and has files of
// its own.
func (e *emulated) maps() (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", e.cmd.Process.Pid))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		rights := []byte(f[1])
		rights[2] = '-'
		if len(f) == 5 && e.isTrampoline(f[0]) {
			rights[2] = 'x'
		}
		if len(f) > 5 {
			isOwn, isCode := e.isCode(f[5], f[2])
			if !isOwn {
				continue
			}
			if isCode {
				rights[2] = 'x'
			}
		}
		out.WriteString(strings.Replace(line, f[1], string(rights), 1))
	}
	return out.String(), nil
}

// isTrampoline reports whether handlers of signals return to the beginning of a mapping: it has
// mov x8, #139 and svc #0.
func (e *emulated) isTrampoline(addresses string) bool {
	var start uint64
	_, _ = fmt.Sscanf(addresses, "%x", &start)
	code, _ := e.word(start)
	return code == 0xd4000001_d2801168
}

// isCode reports whether a file is of AArch64, and whether there is code at an offset of it.
func (e *emulated) isCode(path, offset string) (isOwn, isCode bool) {
	list, isKnown := e.code[path]
	if !isKnown {
		if f, err := elf.Open(path); err == nil {
			if f.Machine == elf.EM_AARCH64 {
				list = []elf.ProgHeader{}
				for _, p := range f.Progs {
					if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
						list = append(list, p.ProgHeader)
					}
				}
			}
			_ = f.Close()
		}
		e.code[path] = list
	}
	var at uint64
	_, _ = fmt.Sscanf(offset, "%x", &at)
	for _, p := range list {
		isCode = isCode || at >= p.Off&^(pageSize-1) && at < p.Off+p.Filesz
	}
	return list != nil, isCode
}
