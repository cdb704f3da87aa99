// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// FuzzSymbolFilesOfMacOS writes symbol files of damaged programs: code has one STACK CFI INIT record at most, and
// records are by address.
func FuzzSymbolFilesOfMacOS(f *testing.F) {
	plugins, err := plugin.NewManager(plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), aarch64.New()}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(plugins.Close)
	for _, arch := range []string{"arm64", "x86_64"} {
		data, err := os.ReadFile(filepath.Join("../internal/macho/testdata", "unwind-"+arch))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, true)
		f.Add(data, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, readsCode bool) {
		o, err := object.New("fuzz", data)
		if err != nil || !o.IsMachO() {
			return
		}
		defer o.Close()
		var options Options
		if readsCode {
			options.Plugins = func() (*plugin.Manager, error) { return plugins, nil }
		}
		s := New(options)
		defer s.Close()
		var out bytes.Buffer
		if _, err := s.newFile(o).WriteSymbolFile(&out); err != nil {
			return
		}
		last := uint64(0)
		for line := range strings.Lines(out.String()) {
			var start, size uint64
			if n, _ := fmt.Sscanf(line, "STACK CFI INIT %x %x ", &start, &size); n == 2 {
				if start < last || size == 0 {
					t.Fatalf("%s: the record before it ends at %#x", line, last)
				}
				last = start + size
			}
		}
	})
}
