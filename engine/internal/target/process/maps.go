// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
)

// maxMappings bounds the mappings that are read. The kernel's own bound is
// vm.max_map_count, 65,530 by default.
const maxMappings = 1 << 20

// mapping is a line of /proc/PID/maps (proc_pid_maps(5)).
type mapping struct {
	start, end uint64
	offset     uint64 // in the file, in bytes
	flags      elf.ProgFlag
	device     string
	inode      uint64
	path       string // as the kernel prints it: "" for anonymous memory, "[stack]", "/bin/x (deleted)"
}

// isOfFile reports whether a file is mapped, rather than anonymous memory, which may have a
// name in brackets.
func (m *mapping) isOfFile() bool {
	return m.inode != 0 || strings.HasPrefix(m.path, "/") || strings.HasPrefix(m.path, "anon_inode:")
}

// deletedSuffix is appended by the kernel to the path of a file that was deleted.
const deletedSuffix = " (deleted)"

func (m *mapping) isDeleted() bool { return strings.HasSuffix(m.path, deletedSuffix) }

// parseMaps reads /proc/PID/maps.
func parseMaps(data []byte) ([]mapping, error) {
	list := make([]mapping, 0, min(bytes.Count(data, []byte{'\n'})+1, maxMappings))
	path := "" // consecutive mappings of a file share it
	for number := 1; len(data) > 0; number++ {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		if len(list) == maxMappings {
			return nil, fmt.Errorf("more than %d mappings", maxMappings)
		}
		m, name, ok := parseMapping(line)
		if !ok || len(list) > 0 && m.start < list[len(list)-1].end {
			return nil, fmt.Errorf("line %d: %q, expected START-END RIGHTS OFFSET DEVICE INODE PATH in the order of addresses", number, line)
		}
		if path != name {
			// The kernel escapes newlines, and nothing else.
			path = strings.ReplaceAll(name, `\012`, "\n")
		}
		m.path = path
		list = append(list, m)
	}
	return list, nil
}

// CodeFiles returns paths by which the files of a live process's code can be opened, each once. Its
// threads are not stopped.
func CodeFiles(pid int) (files []string, err error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	raw, err := readFile(dir+"/maps", nil)
	if err != nil {
		return nil, err
	}
	list, err := parseMaps(raw)
	if err != nil {
		return nil, fmt.Errorf("%s/maps: %w", dir, err)
	}
	seen := map[string]bool{}
	for i := range list {
		m := &list[i]
		if m.flags&elf.PF_X == 0 || !strings.HasPrefix(m.path, "/") || seen[m.path] {
			continue
		}
		seen[m.path] = true
		file := dir + "/root" + m.path
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() { // it was deleted
			file = fmt.Sprintf("%s/map_files/%x-%x", dir, m.start, m.end)
		}
		files = append(files, file)
	}
	return files, nil
}

// parseMapping reads a line, without its path.
func parseMapping(line []byte) (m mapping, path string, ok bool) {
	fields := [5]string{}
	rest := string(line)
	for i := range fields {
		fields[i], rest, ok = strings.Cut(rest, " ")
		if !ok && i < len(fields)-1 {
			return m, "", false
		}
	}
	first, last, ok := strings.Cut(fields[0], "-")
	if !ok || len(fields[1]) < 4 {
		return m, "", false
	}
	var errs [4]error
	m.start, errs[0] = strconv.ParseUint(first, 16, 64)
	m.end, errs[1] = strconv.ParseUint(last, 16, 64)
	m.offset, errs[2] = strconv.ParseUint(fields[2], 16, 64)
	m.inode, errs[3] = strconv.ParseUint(fields[4], 10, 64)
	for _, err := range errs {
		if err != nil {
			return m, "", false
		}
	}
	for i, flag := range [...]elf.ProgFlag{elf.PF_R, elf.PF_W, elf.PF_X} {
		if fields[1][i] != '-' {
			m.flags |= flag
		}
	}
	m.device = fields[3]
	return m, strings.TrimLeft(rest, " "), m.end > m.start
}

// find returns the mapping that contains an address; nil if none does.
func find(list []mapping, address uint64) *mapping {
	i := sort.Search(len(list), func(i int) bool { return list[i].end > address })
	if i == len(list) || address < list[i].start {
		return nil
	}
	return &list[i]
}
