// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
)

// TestAugmentationStrings has the form of A.3.1.1, versions by semantic versioning.
func TestAugmentationStrings(t *testing.T) {
	for text, isGood := range map[string]bool{
		"": true, "[abc:v0.0]": true, "[abc:v0.0][def:v1.2:feature-a=on,feature-b=3]": true, "[llvm:v10.0:]": true,
		"abc": false, "[abc]": false, "[abc:0.0]": false, "[abc:v1]": false, "[abc:v01.0]": false, "[abc:v1.0:a]b]": false, "[abc:v1.0] ": false, "[:v1.0]": false,
	} {
		if augmentations().MatchString(text) != isGood {
			t.Errorf("%q: %v, expected %v", text, !isGood, isGood)
		}
	}
	if err := checkAugmentation("LLVM0700", 8); err != nil { // the form is recommended here
		t.Error(err)
	}
	if err := checkAugmentation("\xff", 8); err == nil || !strings.Contains(err.Error(), `.debug_names: offset 0x8: the augmentation string is "\xff", expected UTF-8`) {
		t.Error(err)
	}
}

// TestAddressSizesOfSections has the headers of a unit's parts say another size of
// addresses than the unit (DWARF 5, 7.27 to 7.29).
func TestAddressSizesOfSections(t *testing.T) {
	file := linked(t)
	for section, at := range map[string]int{"": 0, ".debug_addr": 6, ".debug_loclists": 6} {
		data := bytes.Clone(file)
		want := ""
		if section != "" {
			f, err := elf.NewFile(bytes.NewReader(file))
			if err != nil {
				t.Fatal(err)
			}
			data[f.Section(section).Offset+uint64(at)] = 4
			want = section + ": offset 0x6: addresses of 4 bytes, those of the unit at 0x0 of .debug_info have 8"
		}
		path := filepath.Join(t.TempDir(), "values")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := object.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, err := range Expressions(o, Options{}) {
			if err != nil {
				got = append(got, err.Error())
			}
		}
		o.Close()
		if all := strings.Join(got, "; "); want == "" && all != "" || !strings.Contains(all, want) || len(got) > 1 {
			t.Errorf("%s: %q, expected %q", section, all, want)
		}
	}
}

// linked is a program with DWARF 5 of clang, of testdata/bigendian of engine.
func linked(t *testing.T) []byte {
	t.Helper()
	z, err := zip.OpenReader("../../../testdata/bigendian/ppc64le.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	f, err := z.Open("modules/0.elf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
