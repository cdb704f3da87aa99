// SPDX-License-Identifier: Apache-2.0

package archpb

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestOtherLanguagesTakeTheProtocol generates code for languages in which
// plugins may be written, with the generators of Debian 12, and has C++, C and
// Python read what came of it. C's generator knows no optional fields in proto3;
// C and C++ have macros for names.
func TestOtherLanguagesTakeTheProtocol(t *testing.T) {
	source, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	protoc := oracle.Tool(t, "protoc")
	// generate runs protoc in a folder of its own, which it returns.
	generate := func(t *testing.T, args ...string) string {
		t.Helper()
		dir := t.TempDir()
		oracle.With{Dir: dir}.Run(t, protoc, append([]string{"--proto_path=" + source, "arch.proto", "runtime.proto"}, args...)...)
		return dir
	}
	for _, language := range []string{"cpp", "csharp", "java", "kotlin", "objc", "php", "python", "pyi", "ruby"} {
		t.Run(language, func(t *testing.T) { generate(t, "--"+language+"_out=.") })
	}
	t.Run("C++ compiles", func(t *testing.T) {
		needFile(t, "/usr/include/google/protobuf/message.h", "libprotobuf-dev")
		compiler := oracle.Tool(t, "g++")
		dir := generate(t, "--cpp_out=.")
		compile(t, dir, compiler, "plugin.cc", "runtime.pb.h")
	})
	t.Run("C compiles", func(t *testing.T) {
		needFile(t, "/usr/include/protobuf-c/protobuf-c.h", "libprotobuf-c-dev")
		oracle.Tools(t, "gcc", "protoc-c")
		dir := t.TempDir()
		oracle.With{Dir: dir}.Run(t, "protoc-c", "--proto_path="+source, "--c_out=.", "arch.proto", "runtime.proto")
		compile(t, dir, "gcc", "plugin.c", "runtime.pb-c.h")
	})
	t.Run("Python imports", func(t *testing.T) {
		const python = "/usr/bin/python3" // Debian's, which has Debian's modules
		needFile(t, python, "python3")
		needFile(t, "/usr/lib/python3/dist-packages/google/protobuf", "python3-protobuf")
		oracle.With{Dir: generate(t, "--python_out=.")}.Run(t, python, "-c", "import arch_pb2, runtime_pb2; arch_pb2.TranslateRequest(expression=b'').HasField('expression') or exit(1)")
	})
}

// compile checks that a program can include a generated header, beside those of
// the system that a plugin is likely to use.
func compile(t *testing.T, dir, compiler, name, header string) {
	t.Helper()
	program := "#include <elf.h>\n#include <endian.h>\n#include <signal.h>\n#include <sys/mman.h>\n#include \"" + header + "\"\nint main() { return 0; }\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.With{Dir: dir}.Run(t, compiler, "-fsyntax-only", name)
}

// needFile says that a test needs a file of a Debian package.
func needFile(t *testing.T, path, debian string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		oracle.Missing(t, "%s is missing (Debian: %s)", path, debian)
	}
}
