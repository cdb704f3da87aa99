// SPDX-License-Identifier: Apache-2.0

// Package breakpad gets the tools of Breakpad: the package minidump of npm has
// executables of its readers, and the sources of its writers, which are compiled. The
// results are kept in the cache directory.
package breakpad

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// Version is that of npm's package.
const Version = "0.26.0"

// writerSources are the sources of Breakpad's client for Linux, beneath src, and of
// core2md, which writes the minidump of a core.
const writerSources = `client/linux/crash_generation/crash_generation_client client/linux/dump_writer_common/thread_info
	client/linux/dump_writer_common/ucontext_reader client/linux/handler/exception_handler client/linux/handler/minidump_descriptor
	client/linux/log/log client/linux/microdump_writer/microdump_writer client/linux/minidump_writer/linux_core_dumper
	client/linux/minidump_writer/linux_dumper client/linux/minidump_writer/linux_ptrace_dumper client/linux/minidump_writer/minidump_writer
	client/linux/minidump_writer/pe_file client/minidump_file_writer common/convert_UTF common/md5 common/path_helper
	common/string_conversion common/linux/elfutils common/linux/elf_core_dump common/linux/file_id common/linux/guid_creator
	common/linux/linux_libc_support common/linux/memory_mapped_file common/linux/safe_readlink`

// compile compiles them two at a time, $2 and what follows it, with $1, the source of the library
// that installs the handler.
const compile = `set -eu
flags="-std=c++20 -O1 -fPIC -w -Ipackage/deps/breakpad/src -Ipackage/deps -DHAVE_A_OUT_H -DHAVE_GETCONTEXT=1"
install=$1
shift
printf '%s\n' "$@" tools/linux/core2md/core2md | xargs -P2 -I{} sh -c 'g++ '"$flags"' -c package/deps/breakpad/src/{}.cc -o $(basename {}).o'
g++ $flags -c "$install" -o install.o
mv core2md.o install.o package
g++ package/core2md.o *.o -o core2md
g++ -shared package/install.o *.o -o libwriter.so -pthread
ln -s package/bin/linux-x64/* .
rm *.o`

//go:embed testdata/writer.cpp
var writer []byte

// Readers is a folder with minidump_stackwalk, minidump_dump and dump_syms: that which
// UNWINDD_PEER_BREAKPAD names, or one that npm's package is unpacked to.
func Readers() (string, error) {
	if set := os.Getenv("UNWINDD_PEER_BREAKPAD"); set != "" {
		return set, nil
	}
	dir, err := cost.Kept(keptName("readers"), unpack)
	return filepath.Join(dir, "package/bin/linux-x64"), err
}

// Tools is a folder with the readers, with core2md, and with libwriter.so, which
// testdata/writer.cpp describes. They take a minute of g++.
func Tools() (string, error) {
	return cost.Kept(toolsName(), func(dir string) error {
		if err := unpack(dir); err != nil {
			return err
		}
		install := filepath.Join(dir, "writer.cpp")
		if err := os.WriteFile(install, writer, 0o600); err != nil {
			return err
		}
		return cost.Run(dir, "sh", append([]string{"-c", compile, "sh", install}, strings.Fields(writerSources)...)...)
	})
}

// HasTools reports whether Tools has nothing to make.
func HasTools() bool {
	return cost.IsKept(toolsName())
}

func toolsName() string {
	sum := sha256.Sum256([]byte(compile + writerSources + string(writer)))
	return keptName(fmt.Sprintf("tools-%x", sum[:8]))
}

func unpack(dir string) error {
	return cost.Run(dir, "sh", "-c", "npm pack --silent minidump@"+Version+" >/dev/null && tar xzf minidump-"+Version+".tgz && rm minidump-"+Version+".tgz")
}

func keptName(name string) string { return "breakpad-" + Version + "-" + name }
