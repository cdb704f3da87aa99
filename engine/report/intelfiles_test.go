// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/subject"
)

// The compiler's container has the files that it dumps of each kernel.
func TestKernelsInAContainerAreReadLikeFilesOfTheirOwn(t *testing.T) {
	files := subject.BuildIntel(t)
	var listed bytes.Buffer
	if err := openNotes(t, files.Container).WriteText(&listed); err != nil {
		t.Fatal(err)
	}
	if out := listed.String(); !strings.HasPrefix(out, "container\n  #0 ") || !strings.Contains(out, "bytes  alpha\n") || !strings.Contains(out, "bytes  beta\n") {
		t.Error(out)
	}
	if len(files.ELF) != 2 {
		t.Fatalf("%q, expected two", files.ELF)
	}
	for i, name := range []string{"alpha", "beta"} {
		inside, alone := writtenAs(t, files.Container+"#"+name), writtenAs(t, files.ELF[i])
		if diff := cmp.Diff(alone, inside); diff != "" || len(inside["rows"]) < 20 || len(inside["entries"]) < 20 || len(inside["expressions"]) < 20 {
			t.Errorf("%s (-file +inside): %s", name, diff)
		}
		addresses := []string{"0x0", "0x40", "0x100", "0x200", "0x300"}
		if in, of := symbolized(t, files.Container+"#"+name, addresses...), symbolized(t, files.ELF[i], addresses...); in != of || len(in) < 20 {
			t.Errorf("%s: %s\nof the file:\n%s", name, in, of)
		}
	}
	for file, says := range map[string]string{
		files.Container: "but a file that holds code objects: name a code object in it",
		strings.TrimSuffix(files.ELF[0], ".elf") + ".dbg": "not an ELF file",
		files.Container + "#gamma":                        "no such code object in the file",
	} {
		if _, err := object.OpenNested(file, kernelFiles{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, expected %q", file, err, says)
		}
	}
}
