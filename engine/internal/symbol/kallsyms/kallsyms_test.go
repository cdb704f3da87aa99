// SPDX-License-Identifier: Apache-2.0

package kallsyms

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const text = `0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t local
ffffffff81000200 W weak
ffffffff82000000 D some_data
ffffffffc0001000 t of_a_module	[ext4]
`

func TestFind(t *testing.T) {
	table, err := read("kallsyms", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		address uint64
		want    string
	}{
		{0xffffffff80ffffff, ""},
		{0xffffffff81000000, "_stext"},
		{0xffffffff810000ff, "_stext"},
		{0xffffffff81000100, "local"},
		{0xffffffff810001ff, "local"},
		{0xffffffff81000200, "weak"},
		{0xffffffffc0001010, "of_a_module"},
	} {
		s, ok := table.Find(c.address)
		if s.Name != c.want || ok != (c.want != "") {
			t.Errorf("%#x: %q, expected %q", c.address, s.Name, c.want)
		}
	}
	if s, _ := table.Find(0xffffffffc0001010); s.Module != "ext4" {
		t.Errorf("module %q", s.Module)
	}
	for name, want := range map[string]uint64{"_stext": 0xffffffff81000000, "_text": 0xffffffff81000000, "some_data": 0xffffffff82000000} {
		if a, ok := table.Address(name); !ok || a != want {
			t.Errorf("%s: %#x, expected %#x", name, a, want)
		}
	}
	if _, ok := table.Address("of_a_module"); ok {
		t.Error("a symbol of a module is none of the kernel itself")
	}
}

func TestFilesThatAreNotSymbols(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":   {"", "it has no symbols"},
		"hidden":  {"0000000000000000 T _text\n0000000000000000 t x\n", "all addresses are 0"},
		"short":   {"ffffffff81000000 T\n", "line 1: "},
		"type":    {"ffffffff81000000 TT _text\n", "expected ADDRESS TYPE NAME"},
		"address": {"ffffffff81000000 T _text\nwhat T x\n", `line 2: address "what"`},
		"long":    {strings.Repeat("x", 2<<20), "line 1"},
	} {
		_, err := read("file", strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), "file: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
	if _, err := read("file", strings.NewReader("0000000000000000 T _text\n")); !errors.Is(err, ErrHidden) {
		t.Errorf("got %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestOwnKernel(t *testing.T) {
	table, err := Open("/proc/kallsyms")
	if errors.Is(err, ErrHidden) && os.Geteuid() != 0 {
		return // as it should be
	}
	if err != nil {
		t.Fatal(err)
	}
	at, ok := table.Address("_text")
	if !ok {
		t.Fatal("no _text")
	}
	if s, ok := table.Find(at); !ok || s.Start != at {
		t.Errorf("%+v at %#x", s, at)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(text))
	f.Add([]byte("0 T a\n1 t b [m]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := read("fuzz", strings.NewReader(string(b)))
		if err != nil {
			return
		}
		for _, s := range table.symbols {
			if got, ok := table.Find(s.Start); !ok || got != s {
				t.Errorf("%+v, expected %+v", got, s)
			}
		}
	})
}
