// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Files of /proc describe a process (proc(5)).

// maxFile bounds a file of /proc. The maximum of mappings by default takes some ten megabytes.
const maxFile = 256 << 20

// readFile reads a file of /proc, whose size is unknown, into buf as far as its capacity goes.
func readFile(path string, buf []byte) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf = buf[:0]
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, max(len(buf), 16<<10))
		}
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) > maxFile:
			return nil, fmt.Errorf("%s: more than %d bytes", path, maxFile)
		}
	}
}

// isGone reports whether an error of a file of /proc, or of ptrace, means that the process
// or thread has ended.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// status has fields of /proc/PID/status and of /proc/PID/stat.
type status struct {
	leader   int    // the ID of the process
	tracer   int    // the ID of the process that traces it; 0 if none does
	uid      uint32 // effective
	state    byte   // R, S, D, T, t, Z, X, I
	name     string
	isKernel bool // a thread of the kernel
	started  uint64
}

// flagKernelThread is PF_KTHREAD of the kernel's task flags.
const flagKernelThread = 0x00200000

// readStatus reads the status of a process or a thread. dir is its folder in /proc.
func readStatus(dir string) (s status, err error) {
	data, err := readFile(dir+"/status", nil)
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Name":
			s.name = value
		case "State":
			s.state = (value + "?")[0]
		case "Tgid":
			s.leader, _ = strconv.Atoi(value)
		case "TracerPid":
			s.tracer, _ = strconv.Atoi(value)
		case "Uid":
			_, rest, _ := strings.Cut(value, "\t") // real, effective, saved, of the file system
			effective, _, _ := strings.Cut(rest, "\t")
			uid, _ := strconv.ParseUint(effective, 10, 32)
			s.uid = uint32(uid)
		}
	}
	if data, err = readFile(dir+"/stat", nil); err != nil {
		return s, err
	}
	// The name, in parentheses, may have any character.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 || s.leader == 0 {
		return s, fmt.Errorf("%s/stat: %d fields behind the name, expected 20 or more", dir, len(fields))
	}
	flags, _ := strconv.ParseUint(fields[6], 10, 64) // field 9 of proc_pid_stat(5)
	s.isKernel = flags&flagKernelThread != 0
	s.started, _ = strconv.ParseUint(fields[19], 10, 64) // field 22
	return s, nil
}

// threadsOf lists the threads of a process, in the order of their IDs.
func threadsOf(pid int) ([]int, error) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil && !isGone(err) {
		return nil, err
	}
	list := make([]int, 0, len(names))
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, unix.ESRCH)
	}
	return list, nil
}

// ticks per second are the unit of times in /proc/PID/stat: USER_HZ, which is 100 on Linux
// except on Alpha and IA-64.
const ticks = 100

// startTime returns when a process started; zero if the time of the boot is not known.
func startTime(started uint64) time.Time {
	data, err := readFile("/proc/stat", nil)
	if err != nil {
		return time.Time{}
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "btime "); ok {
			boot, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil || started > 1<<40 {
				return time.Time{}
			}
			return time.Unix(boot, 0).Add(time.Duration(started) * time.Second / ticks) //nolint:gosec // bounded
		}
	}
	return time.Time{}
}

// machine has the members of an executable's ELF header that describe its process.
type machine struct {
	class elf.Class
	elf   uint16
	flags uint32
}

// size returns the size of an address.
func (m machine) size() int {
	if m.class == elf.ELFCLASS64 {
		return 8
	}
	return 4
}

// order is the byte order of this machine and its processes.
var order = binary.NativeEndian

// readMachine reads the header of a process's executable, at path.
func readMachine(path string) (m machine, err error) {
	f, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer f.Close()
	var head [64]byte
	if n, err := io.ReadFull(f, head[:]); err != nil || string(head[:4]) != elf.ELFMAG {
		return m, fmt.Errorf("%s: the executable begins with %q, expected an ELF header", path, head[:min(n, 4)])
	}
	m.class = elf.Class(head[elf.EI_CLASS])
	m.elf = order.Uint16(head[18:])
	m.flags = order.Uint32(head[36:])
	if m.class == elf.ELFCLASS64 {
		m.flags = order.Uint32(head[48:])
	}
	return m, nil
}
