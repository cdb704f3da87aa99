// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// otherKernel is a recording of a kernel that is not this machine's, with a frame in it and one
// in a module.
func otherKernel(t testing.TB, hasAddress bool) string {
	t.Helper()
	b := newShape("x86_64", sampleBasics|sampleChain, 0, 0)
	id := append([]byte{0xaa, 0xbb, 0xcc, 0xdd}, bytes.Repeat([]byte{0x11}, 16)...)
	b.record(67, 1|1<<15, int32(-1), id, []byte{20, 0, 0, 0}, "[kernel.kallsyms]")
	const everyone = ^uint32(0)
	if hasAddress {
		b.record(1, 1, everyone, uint32(0), uint64(0xffffffff91000000), uint64(0x1000000), uint64(0xffffffff91000000), "[kernel.kallsyms]_text", everyone, uint32(0), uint64(0))
	}
	b.record(1, 1, everyone, uint32(0), uint64(0xffffffffc0001000), uint64(0x1000), uint64(0), "/lib/modules/6.1.0/kernel/net/some-net.ko.xz", everyone, uint32(0), uint64(0))
	b.comm(7, 100, 0, "program")
	b.sample(inKernel, 7, 1000, 0xffffffff91000010, counted(chainKernel, 0xffffffff91000010, 0xffffffffc0001020))
	return b.write(t)
}

// TestNamesOfAnotherKernel has names in perf's cache, which are moved to the addresses of the
// recorded boot; without them the profile has a hint.
func TestNamesOfAnotherKernel(t *testing.T) {
	const id = "aabbccdd11111111111111111111111111111111"
	const text = "ffffffff81000000 T _text\nffffffff81000000 T first\nffffffffc0001000 t in_module\t[some_net]\n"
	const here = "ffffffff91000000 T _text\nffffffff91000000 T first\nffffffffc0001000 t in_module\t[some_net]\nffffffffc0002000 t other\t[other]\n"
	for name, test := range map[string]struct {
		kallsyms   string
		hasAddress bool
		want, hint string
	}{
		"a boot with other addresses":    {text, true, "0xffffffff91000010 [kernel.kallsyms] _text; 0xffffffffc0001020 /lib/modules/6.1.0/kernel/net/some-net.ko.xz", ""},
		"the recorded boot":              {here, true, "0xffffffff91000010 [kernel.kallsyms] _text; 0xffffffffc0001020 /lib/modules/6.1.0/kernel/net/some-net.ko.xz in_module", ""},
		"the module at another address":  {strings.ReplaceAll(here, "ffffffffc0001000", "ffffffffc0000f00"), true, "0xffffffff91000010 [kernel.kallsyms] _text; 0xffffffffc0001020 /lib/modules/6.1.0/kernel/net/some-net.ko.xz", ""},
		"another module at the address":  {strings.ReplaceAll(here, "some_net", "third"), true, "0xffffffff91000010 [kernel.kallsyms] _text; 0xffffffffc0001020 /lib/modules/6.1.0/kernel/net/some-net.ko.xz", ""},
		"a kernel at an unknown address": {text, false, "", ""}, // the report says so
		"hidden addresses":               {"0000000000000000 T _text\n", true, "", "all addresses are 0"},
		"no file":                        {"", true, "", "no cache of perf has build ID " + id},
	} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			if test.kallsyms != "" {
				file := filepath.Join(cache, "[kernel.kallsyms]", id, "kallsyms")
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(test.kallsyms), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			e := newX86Engine(t, Options{BuildIDDirs: []string{cache}})
			path := otherKernel(t, test.hasAddress)
			p, err := e.Profile(context.Background(), path, trace.ProfileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(shapeStacks(p), "\n"); !strings.Contains(got, test.want) || test.want == "" && strings.Contains(got, "_text") {
				t.Errorf("got %q, expected %q", got, test.want)
			} else if want, _, _ := strings.Cut(got, ":"); test.want != "" && want != test.want {
				t.Errorf("got %q, expected %q", got, test.want)
			}
			hint := ""
			for i := range p.Modules {
				if m := &p.Modules[i]; m.Path == "[kernel.kallsyms]" {
					hint += m.Problem
				}
			}
			if !strings.Contains(hint, test.hint) || test.hint == "" && hint != "" {
				t.Errorf("the problem %q, expected %q", hint, test.hint)
			}
		})
	}
}

// TestNamesOfAnImage takes the names of a kernel from its image, which another boot has elsewhere.
func TestNamesOfAnImage(t *testing.T) {
	const id = "aabbccdd11111111111111111111111111111111"
	source := filepath.Join(t.TempDir(), "image.s")
	text := ".text\n.globl _text, first\n.type first, @function\n_text:\n.skip 8\nfirst:\n.skip 0x100\n.globl next\n.type next, @function\nnext: ret\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	build := func(id string) string {
		return oracle.Build{Sources: []string{source}, Commands: [][]string{
			{"gcc", "-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0xffffffff81000000", "-Wl,-e,first", "-Wl,--build-id=0x" + id, "-o", "vmlinux", source},
		}}.Make(t)
	}
	for name, test := range map[string]struct{ id, want string }{
		"the recorded kernel": {id, "0xffffffff91000010 [kernel.kallsyms] first; 0xffffffffc0001020 /lib/modules/6.1.0/kernel/net/some-net.ko.xz"},
		"another build":       {strings.Replace(id, "aa", "ab", 1), "0xffffffff91000010 [kernel.kallsyms]; 0xffffffffc0001020 /lib/modules/6.1.0/kernel/net/some-net.ko.xz"},
	} {
		folder := build(test.id)
		t.Run(name, func(t *testing.T) {
			e := newX86Engine(t, Options{DebugDirs: []string{folder}})
			p, err := e.Profile(context.Background(), otherKernel(t, true), trace.ProfileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := strings.Cut(strings.Join(shapeStacks(p), "\n"), ":"); got != test.want {
				t.Errorf("got %q, expected %q", got, test.want)
			}
		})
	}
}
