// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// VDSOName is the kernel's name of the code that it maps into each process (vdso(7)).
const VDSOName = "[vdso]"

var errNoVDSO = errors.New("this process has none")

const maxOwnVDSO = 1 << 20

// OwnVDSO reads the vDSO of this process from its memory. All processes of one architecture under a
// kernel have the same.
func OwnVDSO() ([]byte, error) {
	maps, err := os.Open("/proc/self/maps")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoVDSO
	}
	if err != nil {
		return nil, err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasSuffix(line, VDSOName) {
			continue
		}
		first, last, _ := strings.Cut(strings.Fields(line)[0], "-")
		start, err := strconv.ParseInt(first, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("/proc/self/maps: %w", err)
		}
		end, err := strconv.ParseInt(last, 16, 64)
		if err != nil || end <= start || end-start > maxOwnVDSO {
			return nil, fmt.Errorf("/proc/self/maps: %q, expected a range of at most %d bytes", line, maxOwnVDSO)
		}
		memory, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil, err
		}
		defer memory.Close()
		return io.ReadAll(io.NewSectionReader(memory, start, end-start))
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return nil, errNoVDSO
}
