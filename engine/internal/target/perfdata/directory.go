// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// perf record --threads writes a directory: the file "data" has the header, and the
// records of perf itself; data.0, data.1 and so on have only the records that each of
// its threads took from the kernel. --kcore adds kcore_dir with
// copies of the kernel's files (tools/perf/Documentation/perf.data-directory-format.txt).
const (
	dirFormat = 1 // of HEADER_DIR_FORMAT
	maxParts  = 1 << 14
)

func isDirectory(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// headerFile returns a file of the recording that has its header.
func headerFile(path string) string {
	if names := seriesNames(path); len(names) > 0 {
		return names[len(names)-1]
	}
	if isDirectory(path) {
		return filepath.Join(path, "data")
	}
	return path
}

// openParts maps the files beside the one with the header, and scans them.
func (f *File) openParts() {
	if f.mapping == nil || !isDirectory(f.path) {
		return
	}
	numbers, err := partNumbers(f.path)
	if err != nil {
		f.problems.add("%v: the records in the files beside \"data\" are not read", err)
	}
	if len(numbers) > maxParts {
		f.problems.add("%d files of records, of which %d are read", len(numbers), maxParts)
		numbers = numbers[:maxParts]
	}
	for _, n := range numbers {
		name := "data." + strconv.Itoa(n)
		m, err := object.Map(filepath.Join(f.path, name))
		if errors.Is(err, object.ErrEmpty) { // a thread that had nothing to do
			continue
		}
		if err != nil {
			f.problems.add("%v", err)
			continue
		}
		f.mapped = append(f.mapped, m)
		f.areas = append(f.areas, area{data: m.Data(), order: f.order, mapping: m, name: name})
		index := len(f.areas) - 1
		f.scan(index)
		f.unpack(index)
	}
}

// partNumbers returns the numbers of the files of records in a directory.
func partNumbers(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "data.")
		if n, err := strconv.Atoi(digits); ok && err == nil && digits == strconv.Itoa(n) && n >= 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// Kallsyms returns the path of the copy of /proc/kallsyms that perf record --kcore puts
// into the directory of a recording; "" where there is none.
func (f *File) Kallsyms() string {
	if f.mapping == nil || !isDirectory(f.path) {
		return ""
	}
	path := filepath.Join(f.path, "kcore_dir", "kallsyms")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
