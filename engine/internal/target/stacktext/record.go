// SPDX-License-Identifier: Apache-2.0

package stacktext

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
)

// recordPrefix begins the name of a record that is no sample (perf script --show-mmap-events and
// others).
const recordPrefix = "PERF_RECORD_"

// record reads a record that is no sample: where code was mapped is used.
func (r *scriptReader) record(line []byte) {
	_, text, _ := bytes.Cut(line, []byte(recordPrefix))
	m, ok := parseMapping(string(text))
	switch {
	case ok && m.Path != "":
		r.Mappings = append(r.Mappings, m)
	case !ok && !bytes.HasPrefix(text, []byte("MMAP")):
		r.others++
	}
}

// parseMapping reads a mapping: MMAP2 PID/TID: [0xSTART(0xSIZE) @ OFFSET DEVICE INODE GENERATION]:
// r-xp PATH. It has no path where it is not of code.
func parseMapping(text string) (m stacktree.Mapping, ok bool) {
	kind, text, _ := strings.Cut(text, " ")
	owner, text, hasOwner := strings.Cut(text, ": [")
	inside, text, hasRange := strings.Cut(text, "]: ")
	prot, name, hasPath := strings.Cut(text, " ")
	if !strings.HasPrefix(kind, "MMAP") || !hasOwner || !hasRange || !hasPath {
		return m, false
	}
	pid, _, _ := strings.Cut(owner, "/")
	var err error
	if m.PID, err = strconv.Atoi(pid); err != nil {
		return m, false
	}
	place, offset, hasOffset := strings.Cut(inside, " @ ")
	start, size, hasSize := strings.Cut(strings.TrimSuffix(place, ")"), "(")
	offset, _, _ = strings.Cut(offset, " ")
	length := uint64(0)
	isRange := hasOffset && hasSize && parseNumber(start, &m.Start) && parseNumber(size, &length) && parseNumber(offset, &m.Offset)
	if m.End = m.Start + length; !isRange || m.End < m.Start {
		return m, false
	}
	if strings.Contains(prot, "x") && strings.HasPrefix(name, "/") {
		m.Path = name
	}
	return m, true
}

// parseNumber reads a number as C writes it.
func parseNumber(text string, n *uint64) bool {
	var err error
	*n, err = strconv.ParseUint(text, 0, 64)
	return err == nil
}
