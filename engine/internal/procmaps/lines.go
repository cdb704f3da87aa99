// SPDX-License-Identifier: Apache-2.0

package procmaps

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
)

// maxLines bounds the lines of /proc/PID/maps: the vm.max_map_count of large
// machines.
const maxLines = 1 << 20

// line is a line of /proc/PID/maps (proc_pid_maps(5)).
type line struct {
	start, end, offset uint64
	isExecutable       bool
	path               string // "" where there is none
}

// readLines reads the lines.
func readLines(r io.Reader) (lines []line, err error) {
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		if n > maxLines {
			return nil, fmt.Errorf("maps: more than %d lines", maxLines)
		}
		l, err := parseLine(s.Text())
		if err != nil {
			return nil, fmt.Errorf("maps, line %d: %w", n, err)
		}
		lines = append(lines, l)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("maps: %w", err)
	}
	return lines, nil
}

// parseLine reads START-END PERMISSIONS OFFSET DEVICE INODE PATH. The path is the
// rest of the line, with its blanks.
func parseLine(text string) (l line, err error) {
	rest := text
	var fields [5]string
	for i := range fields {
		rest = strings.TrimLeft(rest, " ")
		fields[i], rest, _ = strings.Cut(rest, " ")
	}
	first, last, ok := strings.Cut(fields[0], "-")
	if !ok || len(fields[1]) < 4 {
		return l, fmt.Errorf("%.200q, expected START-END PERMISSIONS OFFSET DEVICE INODE PATH", text)
	}
	for _, number := range []struct {
		into *uint64
		text string
	}{{&l.start, first}, {&l.end, last}, {&l.offset, fields[2]}} {
		if *number.into, err = strconv.ParseUint(number.text, 16, 64); err != nil {
			return l, fmt.Errorf("%.200q: %w", text, err)
		}
	}
	if l.end <= l.start {
		return l, fmt.Errorf("%.200q ends where it begins or before", text)
	}
	l.isExecutable = fields[1][2] == 'x'
	l.path = unescapePath(strings.TrimLeft(rest, " "))
	return l, nil
}

// unescapePath restores the line feeds that the kernel writes as \012.
func unescapePath(path string) string { return strings.ReplaceAll(path, `\012`, "\n") }

// groupLines groups the mappings of each file: a lower offset begins a new group, of the
// same file mapped once more.
func groupLines(lines []line) (groups [][]line) {
	open := map[string]int{} // the last group of a path
	for _, l := range lines {
		if perfdata.IsMemory(l.path) || strings.HasPrefix(l.path, "/dev/") {
			continue
		}
		i, ok := open[l.path]
		if !ok || groups[i][len(groups[i])-1].offset > l.offset {
			i = len(groups)
			groups = append(groups, nil)
			open[l.path] = i
		}
		groups[i] = append(groups[i], l)
	}
	return groups
}
