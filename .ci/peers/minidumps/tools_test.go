// SPDX-License-Identifier: Apache-2.0

package minidumps

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/internal/oracle"
)

// unwindd is the command, built once for all tests.
var unwindd = sync.OnceValues(func() (string, error) {
	exe := filepath.Join(folder, "unwindd")
	return exe, cost.Run("../../..", "go", "build", "-trimpath", "-o", exe, "./cmd/unwindd")
})

// folder is where the command is built.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "minidumps-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// The package of npm has the executables of Breakpad's readers, and the sources of its
// writers, which it does not build.
const breakpadPackage = "minidump@0.26.0"

// writerSources are the sources of Breakpad's client for Linux, beneath src, and of
// core2md, which writes the minidump of a core.
const writerSources = `client/linux/crash_generation/crash_generation_client client/linux/dump_writer_common/thread_info
	client/linux/dump_writer_common/ucontext_reader client/linux/handler/exception_handler client/linux/handler/minidump_descriptor
	client/linux/log/log client/linux/microdump_writer/microdump_writer client/linux/minidump_writer/linux_core_dumper
	client/linux/minidump_writer/linux_dumper client/linux/minidump_writer/linux_ptrace_dumper client/linux/minidump_writer/minidump_writer
	client/linux/minidump_writer/pe_file client/minidump_file_writer common/convert_UTF common/md5 common/path_helper
	common/string_conversion common/linux/elfutils common/linux/elf_core_dump common/linux/file_id common/linux/guid_creator
	common/linux/linux_libc_support common/linux/memory_mapped_file common/linux/safe_readlink`

// buildWriters compiles them two at a time, with $1, the source of the library that
// installs the handler.
const buildWriters = `set -eu
flags="-std=c++20 -O1 -fPIC -w -Ipackage/deps/breakpad/src -Ipackage/deps -DHAVE_A_OUT_H -DHAVE_GETCONTEXT=1"
printf '%s\n' ` + "$SOURCES" + ` tools/linux/core2md/core2md | xargs -P2 -I{} sh -c 'g++ '"$flags"' -c package/deps/breakpad/src/{}.cc -o $(basename {}).o'
g++ $flags -c "$1" -o install.o
mv core2md.o install.o package
g++ package/core2md.o *.o -o core2md
g++ -shared package/install.o *.o -o libwriter.so -pthread
ln -s package/bin/linux-x64/* .
rm *.o`

// breakpad is a folder with Breakpad's tools: minidump_stackwalk, minidump_dump,
// dump_syms, core2md and libwriter.so, which testdata/writer.cpp describes.
func breakpad(t testing.TB) string {
	t.Helper()
	source, err := filepath.Abs("testdata/writer.cpp")
	if err != nil {
		t.Fatal(err)
	}
	oracle.Tools(t, "g++", "tar", "xargs")
	return oracle.Build{
		Sources: []string{source},
		Env:     []string{"SOURCES=" + strings.Join(strings.Fields(writerSources), " ")},
		Commands: [][]string{
			{"npm", "pack", "--silent", breakpadPackage},
			{"sh", "-c", "tar xzf *.tgz"},
			{"sh", "-c", buildWriters, "sh", source},
		},
	}.Make(t)
}
