// SPDX-License-Identifier: Apache-2.0

package damage

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestDamage damages files of any size: most are another one then, the same for the same seed,
// and what was damaged stays as it was.
func TestDamage(t *testing.T) {
	for _, size := range []int{0, 1, 2, 7, 64, 5000} {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(i * 7)
		}
		before, changed := bytes.Clone(content), 0
		for n := range uint64(200) {
			got := Of(rand.New(rand.NewPCG(1, n)), content)
			if again := Of(rand.New(rand.NewPCG(1, n)), content); !bytes.Equal(got, again) {
				t.Fatalf("%d bytes, seed %d: twice are two", size, n)
			}
			if !bytes.Equal(got, content) {
				changed++
			}
		}
		if !bytes.Equal(content, before) {
			t.Errorf("%d bytes: the content was changed itself", size)
		}
		if size > 0 && changed < 100 {
			t.Errorf("%d bytes: %d of 200 were changed", size, changed)
		}
	}
}

// TestDamageWhereItHurts damages the project's own examples of each format: most are another
// file then, the same for the same seed, and those of a known format have fields.
func TestDamageWhereItHurts(t *testing.T) {
	for path, hasFields := range map[string]bool{
		"examples/crash/server.core": true, "examples/crash/server.dmp": true, "examples/gpu-profile/cpu.data": true, "examples/gpu-profile/grade.co": true,
		"examples/mixed/mixed.snapshot": true, "engine/internal/symbol/spirv/testdata/calls.spv": true, "engine/object/testdata/bundles/plain.hipfb": true,
		"engine/internal/target/elfcore/testdata/machines/ppc": true, "engine/internal/symbol/llvmir/testdata/foo.ll": false, "examples/gpu-profile/gpu.jsonl": false,
	} {
		content, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(content)
		fields, records := fieldsOf(content), recordsOf(content)
		if (len(fields) > 5) != hasFields {
			t.Errorf("%s: %d fields of headers", path, len(fields))
		}
		for _, f := range fields {
			if f.offset < 0 || f.offset+f.size > len(content) {
				t.Fatalf("%s: a field at %#x of %#x bytes", path, f.offset, len(content))
			}
		}
		if !bytes.HasPrefix(content, []byte("PK")) && !bytes.HasPrefix(content, []byte("__CLANG")) && len(records) < 4 {
			t.Errorf("%s: %d records", path, len(records))
		}
		changed := 0
		for n := range uint64(100) {
			got := With(rand.New(rand.NewPCG(1, n)), content, before)
			if again := With(rand.New(rand.NewPCG(1, n)), content, before); !bytes.Equal(got, again) {
				t.Fatalf("%s, seed %d: twice are two", path, n)
			}
			if !bytes.Equal(got, content) {
				changed++
			}
			_ = With(rand.New(rand.NewPCG(2, n)), got, content) // what is damaged is damaged again
		}
		if !bytes.Equal(content, before) {
			t.Errorf("%s: the content was changed itself", path)
		}
		if changed < 80 {
			t.Errorf("%s: %d of 100 were changed", path, changed)
		}
	}
}
