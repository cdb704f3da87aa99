// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"
	"testing"
)

// TestFilesAreELF opens cores of all drivers by Go's reader of ELF files: tables have whole rows,
// and every section belongs to a row of a table whose name its own goes on from.
func TestFilesAreELF(t *testing.T) {
	for i, driver := range Drivers {
		core := Random(uint64(i), driver, Shape{Devices: 2, SMs: 3, Blocks: 2, Warps: 3, Registers: 20, Local: 100}) //nolint:gosec // small
		f, err := elf.NewFile(bytes.NewReader(core.Build().Bytes()))
		if err != nil {
			t.Fatalf("driver %d: %v", driver, err)
		}
		if f.Type != elf.ET_CORE || f.Machine != 190 || f.OSABI != 0x33 || len(f.Progs) != 0 {
			t.Errorf("driver %d: %+v", driver, f.FileHeader)
		}
		lanes := 0
		for _, s := range f.Sections {
			if s.Type < custom {
				continue
			}
			if s.Entsize > 0 && s.Size%s.Entsize != 0 {
				t.Errorf("driver %d: %s has %d bytes of rows of %d", driver, s.Name, s.Size, s.Entsize)
			}
			if strings.HasPrefix(s.Name, ".cudbg.lntbl") {
				lanes += int(s.Size / s.Entsize) //nolint:gosec // small
			}
			if s.Link == 0 {
				continue
			}
			table := f.Sections[s.Link]
			if rows := table.Size / table.Entsize; uint64(s.Info) >= rows {
				t.Errorf("driver %d: %s belongs to row %d of %d of %s", driver, s.Name, s.Info, rows, table.Name)
			}
			_, suffix, _ := strings.Cut(strings.TrimPrefix(s.Name, ".cudbg."), ".")
			_, parent, _ := strings.Cut(strings.TrimPrefix(table.Name, ".cudbg."), ".")
			isImage := strings.Contains(s.Name, "img.")
			if last := suffix[strings.LastIndex(suffix, ".")+1:]; !isImage && (!strings.HasPrefix(suffix, parent) || !strings.HasSuffix(last, fmt.Sprint(s.Info))) {
				t.Errorf("driver %d: %s belongs to row %d of %s", driver, s.Name, s.Info, table.Name)
			}
		}
		if lanes == 0 {
			t.Errorf("driver %d: no lanes", driver)
		}
	}
}
