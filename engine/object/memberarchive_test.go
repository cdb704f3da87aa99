// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// FuzzMembersOfArchive lists archives, and opens their members.
func FuzzMembersOfArchive(f *testing.F) {
	paths, _ := filepath.Glob("../symbolize/testdata/macos/*.a")
	if len(paths) == 0 {
		f.Fatal("no archives")
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(archiveMagic + fmt.Sprintf("%-16s%-12d%-6d%-6d%-8o%-10d`\n", "//", 0, 0, 0, 0, 4) + "x/\n\n" + fmt.Sprintf("%-16s%-12d%-6d%-6d%-8o%-10d`\n", "/0", 5, 0, 0, 0, 0)))
	f.Add([]byte("\xca\xfe\xba\xbe\x00\x00\x00\x01\x01\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x1c\x00\x00\x00\x08\x00\x00\x00\x00" + archiveMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		a := &Archive{name: "fuzz", members: map[string]archived{}}
		data, err := sliceFor(b, "arm64")
		if err != nil || len(data) < len(archiveMagic) {
			return
		}
		a.problem = a.read(data)
		for name := range a.members {
			o, _, err := a.Open(name)
			if err != nil {
				continue
			}
			_ = o.EachSymbol(func(*Symbol) {})
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
