// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cmd/unwindd/internal/verify"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestAPluginInPython builds the plugin of examples/arch-toy, and has it walk a target of
// its own: what the README of the example shows. It runs confined, as every plugin does.
func TestAPluginInPython(t *testing.T) {
	leftOutOfShort(t)
	oracle.Tools(t, "sh", "protoc", "mktemp", "cp", "rm")
	const python = "/usr/bin/python3" // Debian's, which has Debian's modules
	for _, needed := range []string{python, "/usr/lib/python3/dist-packages/grpc", "/usr/lib/python3/dist-packages/google/protobuf"} {
		if _, err := os.Stat(needed); err != nil {
			oracle.Missing(t, "%s is missing (Debian: python3, python3-grpcio, python3-protobuf)", needed)
		}
	}
	dir, toy := t.TempDir(), filepath.Join("..", "..", "..", "..", "examples", "arch-toy")
	target := filepath.Join(dir, "toy.snapshot")
	oracle.Run(t, "sh", filepath.Join(toy, "build.sh"), dir)
	oracle.Run(t, python, filepath.Join(toy, "make.py"), target)

	readme, err := os.ReadFile(filepath.Join(toy, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := enginetest.Text(t, target, func(a *enginetest.Ask) {
		a.Engine.Plugins.Dirs, a.Engine.Plugins.Self, a.Stack.Lanes = []string{dir}, self(t), true
	})
	_, stacks, _ := strings.Cut(text, "\n\n")
	if stacks == "" || !strings.Contains(string(readme), "\n\n"+stacks+"```\n") {
		t.Errorf("the stack is not the README's:\n%s", stacks)
	}
	r := examine(t, verify.Options{Path: filepath.Join(dir, "unwindd-arch-toy")})
	if len(r.Findings) > 0 || !r.Passed {
		t.Errorf("%+v", r.Findings)
	}
}
