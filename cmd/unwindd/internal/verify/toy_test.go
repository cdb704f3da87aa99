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

// debianPython is Debian's, which has Debian's modules.
const debianPython = "/usr/bin/python3"

func needPython(t *testing.T) {
	t.Helper()
	for _, needed := range []string{debianPython, "/usr/lib/python3/dist-packages/grpc", "/usr/lib/python3/dist-packages/google/protobuf"} {
		if _, err := os.Stat(needed); err != nil {
			oracle.Missing(t, "%s is missing (Debian: python3, python3-grpcio, python3-protobuf)", needed)
		}
	}
}

func example(name ...string) string {
	return filepath.Join(append([]string{"..", "..", "..", "..", "examples"}, name...)...)
}

// TestAPluginInPython builds the plugin of examples/arch-toy, and has it walk a target of
// its own: what the README of the example shows. It runs confined, as every plugin does.
func TestAPluginInPython(t *testing.T) {
	leftOutOfShort(t)
	oracle.Tools(t, "sh", "protoc", "mktemp", "mkdir", "cp", "rm", "sed", "python3")
	needPython(t)
	walksAsItsReadme(t, "arch-toy")
}

// TestAPluginInCpp builds the plugin of examples/arch-toy-cpp: the two answer the same.
func TestAPluginInCpp(t *testing.T) {
	leftOutOfShort(t)
	oracle.Tools(t, "sh", "protoc", "grpc_cpp_plugin", "g++", "mktemp", "mkdir", "rm", "python3")
	if _, err := os.Stat("/usr/include/grpcpp/grpcpp.h"); err != nil {
		oracle.Missing(t, "grpcpp/grpcpp.h is missing (Debian: libgrpc++-dev)")
	}
	t.Setenv("CXXFLAGS", "-O0")
	walksAsItsReadme(t, "arch-toy-cpp")
}

// walksAsItsReadme builds the toy machine's plugin that is in a folder of the examples, and verifies it. The
// stack is that of the README of arch-toy.
func walksAsItsReadme(t *testing.T, folder string) {
	t.Helper()
	dir := t.TempDir()
	target := filepath.Join(dir, "toy.snapshot")
	oracle.Run(t, "sh", example(folder, "build.sh"), dir)
	oracle.Run(t, "python3", example("arch-toy", "make.py"), target)

	readme, err := os.ReadFile(example("arch-toy", "README.md"))
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

// TestPythonPackage runs the tests of examples/python, and of the plugins that use it, and has
// mypy check the types of all.
func TestPythonPackage(t *testing.T) {
	leftOutOfShort(t)
	oracle.Tools(t, "sh", "protoc", "mkdir", "cp", "sed", "mypy")
	needPython(t)
	for _, plugin := range [][3]string{{"arch-toy", "toy", "test_toy.py"}, {"runtime-toy", "plugin", "test_runtime_toy.py"}} {
		dir := t.TempDir()
		oracle.Run(t, "sh", example("python", "build.sh"), example(plugin[0], plugin[1]), dir+"/")
		oracle.Run(t, "cp", example("python", "test_unwindd_plugin.py"), example(plugin[0], plugin[2]), dir)
		in := oracle.With{Dir: dir}
		in.Run(t, "mypy", ".")
		in.Run(t, debianPython, "-W", "error", "-m", "unittest", "-q")
	}
}
