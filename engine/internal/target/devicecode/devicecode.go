// SPDX-License-Identifier: Apache-2.0

// Package devicecode finds the code objects of accelerators that a living process has: in the files
// that it has mapped, and in memory of its own, where programs that compile at run time keep them and
// load them from.
package devicecode

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// Bounds of one process.
const (
	maxMaps   = 64 << 20 // bytes of its list of mappings
	maxFiles  = 1 << 12
	maxRanges = 1 << 20
)

// Process has the mappings of a living process.
type Process struct {
	PID int
	// Files are the paths of mapped files, as this machine reaches them.
	Files []string
	// Ranges are memory of its own: anonymous, or of files that have no name any more.
	Ranges []object.MemoryRange
	// Read copies memory at an address, and returns how many bytes it could.
	Read func(address uint64, buf []byte) int
}

// PIDOf returns the number of a process that a name means: digits, and no file's name.
func PIDOf(name string) (pid int, ok bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil || n <= 0 {
		return 0, false
	}
	_, err = os.Lstat(name)
	return int(n), errors.Is(err, fs.ErrNotExist)
}

// errMaps is the error for a line of /proc/PID/maps (proc_pid_maps(5)) that cannot be read.
var errMaps = errors.New("expected START-END PERMISSIONS OFFSET DEVICE INODE PATH")

// read reads a list of mappings; root is the folder through which the process's files are reached.
func (p *Process) read(maps []byte, root string) error {
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(maps))
	lines.Buffer(nil, 1<<16)
	for number := 1; lines.Scan(); number++ {
		m, err := parseMapping(lines.Text())
		if err != nil {
			return fmt.Errorf("process %d: line %d of its mappings: %w", p.PID, number, err)
		}
		switch {
		case !m.isReadable:
		case m.isFile && !seen[m.path] && len(p.Files) < maxFiles:
			seen[m.path] = true
			p.Files = append(p.Files, root+m.path)
		case m.isOwn && len(p.Ranges) < maxRanges:
			p.Ranges = append(p.Ranges, object.MemoryRange{Start: m.start, Size: m.end - m.start})
		}
	}
	return lines.Err()
}

// mapping is a line of the list.
type mapping struct {
	start, end                uint64
	isReadable, isFile, isOwn bool
	path                      string
}

// ownNames are the names of anonymous memory. Devices, which reading may disturb, and what the kernel
// maps are not read.
var ownNames = []string{"", "[heap]", "[anon:", "[anon_shmem:", "/memfd:", "/dev/shm/", "/dev/zero"}

// deletedSuffix ends the name of a file that has none any more.
const deletedSuffix = " (deleted)"

func parseMapping(line string) (m mapping, err error) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 5 {
		return m, errMaps
	}
	start, end, isRange := strings.Cut(fields[0], "-")
	var errStart, errEnd error
	m.start, errStart = strconv.ParseUint(start, 16, 64)
	m.end, errEnd = strconv.ParseUint(end, 16, 64)
	if !isRange || errStart != nil || errEnd != nil || m.end < m.start || len(fields[1]) < 4 {
		return m, errMaps
	}
	m.isReadable = fields[1][0] == 'r'
	if len(fields) > 5 {
		m.path = strings.TrimLeft(fields[5], " ")
	}
	for _, name := range ownNames {
		m.isOwn = m.isOwn || m.path == name || name != "" && strings.HasPrefix(m.path, name)
	}
	isDevice := strings.HasPrefix(m.path, "/dev/")
	m.isOwn = m.isOwn || strings.HasSuffix(m.path, deletedSuffix) && !isDevice
	m.isFile = strings.HasPrefix(m.path, "/") && !isDevice && !m.isOwn
	return m, nil
}
