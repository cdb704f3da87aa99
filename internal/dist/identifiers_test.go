// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// identifier is what says the licence of a source file to programs.
const identifier = "SPDX-License-Identifier: Apache-2.0"

// begins are the comments that a source file begins with: behind #! where there is
// one. By the end of the name, or the whole name.
var begins = map[string]string{
	".go": "// ", ".proto": "// ", ".js": "// ", ".css": "/* ", ".html": "{{/* ",
	".sh": "# ", ".py": "# ", ".yml": "# ", "Makefile": "# ", "run": "# ", "each": "# ", "fuzz": "# ", "dist": "# ", ".service": "# ", ".socket": "# ", "prerm": "# ", "postrm": "# ",
}

// isExempt says that a file has no identifier, though its name is one of a source file.
func isExempt(path string) bool {
	switch {
	case strings.Contains(path, "testdata/"):
		return true // its bytes, or its lines, are what a test is about
	case strings.HasPrefix(path, "examples/"):
		// Debug information of the examples has the lines of their sources.
		return filepath.Ext(path) != ".go" && filepath.Ext(path) != ".sh" && filepath.Ext(path) != ".py"
	}
	return false
}

// TestSourcesSayTheirLicence looks at every source file of the checkout.
func TestSourcesSayTheirLicence(t *testing.T) {
	sources := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		if d.IsDir() {
			if rel == ".git" || rel == "bin" || rel == "dist" {
				return fs.SkipDir
			}
			return nil
		}
		begin, ok := begins[filepath.Ext(rel)]
		if !ok {
			begin, ok = begins[filepath.Base(rel)]
		}
		if !ok || !d.Type().IsRegular() || isExempt(rel) {
			return nil
		}
		sources++
		line, err := firstComment(path)
		if err == nil && !strings.HasPrefix(line, begin+identifier) {
			t.Errorf("%s begins with %q, expected %q", rel, line, begin+identifier)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if sources < 100 {
		t.Errorf("%d source files, expected 100 or more", sources)
	}
}

// firstComment is the first line of a file, or the second where that is #!.
func firstComment(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for range 2 {
		lines.Scan()
		if !strings.HasPrefix(lines.Text(), "#!") {
			break
		}
	}
	return lines.Text(), lines.Err()
}
