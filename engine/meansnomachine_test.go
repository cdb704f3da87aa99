// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// machineNames is what code that holds for every architecture does not mention: names of
// processors, of their registers and of the operating system's structures for them.
var machineNames = regexp.MustCompile(`(?i)x86|amd64|i386|aarch64|arm64|riscv|\b[er](ax|bx|cx|dx|si|di|bp|sp|ip)\b|\bfs_?base\b|\bx(29|30)\b`)

// TestTheEngineMeansNoMachine reads the packages that walk and explain stacks: what they
// know of a machine is its architecture's description. Comments may give examples.
func TestTheEngineMeansNoMachine(t *testing.T) {
	t.Parallel()
	// What formats define for one machine alone.
	allowed := map[string]string{"unwindcodes.go": "MachineX86_64"}
	files := 0
	for _, dir := range []string{"walk", "internal/code", "internal/fact", "internal/managed", "internal/value", "internal/disassembler", "symbolize"} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			if strings.HasPrefix(d.Name(), "symbolfile") {
				return nil // Breakpad's files name machines and registers
			}
			files++
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				var text string
				switch n := n.(type) {
				case *ast.ImportSpec:
					return false
				case *ast.Ident:
					text = n.Name
				case *ast.BasicLit:
					text = n.Value
				}
				if what := allowed[d.Name()]; machineNames.MatchString(text) && (what == "" || !strings.Contains(text, what)) {
					t.Errorf("%s: %s", set.Position(n.Pos()), text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 50 {
		t.Errorf("%d files were read, expected 50 or more", files)
	}
}
