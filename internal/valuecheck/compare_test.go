// SPDX-License-Identifier: Apache-2.0

package valuecheck

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// subject is the program of a name, built, with its core.
func subject(t *testing.T, name string) (s *Subject, exe, core string) {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Subjects(dir, dir) {
		if s.Name != name {
			continue
		}
		oracle.Tools(t, "gdb")
		exe, core, err := s.Core(oracle.Build{Sources: s.Sources, Commands: s.Commands}.Make(t), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return s, exe, core
	}
	t.Fatalf("no subject %q", name)
	return nil, "", ""
}

// echo is a document that says what a peer says, in the peer's own words.
func echo(p *Peer) *Document {
	d := &Document{Globals: echoes(p.Globals)}
	for _, t := range p.Threads {
		thread := Thread{ID: t.ID}
		for _, f := range t.Frames {
			thread.Frames = append(thread.Frames, Frame{PC: f.PC, Function: f.Function, Inlined: f.Kind == "inline", Locals: echoes(f.Variables)})
		}
		d.Threads = append(d.Threads, thread)
	}
	return d
}

func echoes(nodes []*Node) []*Value {
	var all []*Value
	for _, n := range nodes {
		v := &Value{Name: n.Name, Type: n.Type, Value: n.Text, Status: "ok", Kind: n.Kind, Line: n.Line, Children: echoes(n.Children)}
		if strings.HasSuffix(n.Code, "ref") && len(v.Children) == 1 {
			v.Children[0].Kind = "pointee"
		}
		if n.Code == "array" {
			v.More = n.Elements - len(v.Children)
		}
		switch {
		case n.Optimized:
			v.Status = "optimized-out"
		case n.Error != "":
			v.Status = "error"
		}
		all = append(all, v)
	}
	return all
}

// leaves are the values of a document that have no parts.
func leaves(values []*Value, f func(*Value)) {
	for _, v := range values {
		if len(v.Children) == 0 && v.Value != "" && v.Status == "ok" {
			f(v)
		}
		leaves(v.Children, f)
	}
}

func (d *Document) leaves(f func(*Value)) {
	for _, t := range d.Threads {
		for _, fr := range t.Frames {
			leaves(fr.Locals, f)
		}
	}
	leaves(d.Globals, f)
}

// TestWhatGDBSaysIsEqualToItself holds a document in gdb's own words against gdb:
// every value is equal. Then each is changed alone, and is wrong, or is taken
// away, and is missed.
func TestWhatGDBSaysIsEqualToItself(t *testing.T) {
	for _, name := range []string{"types gcc -O0 DWARF 5", "types gcc -O2 DWARF 5", "classes gcc -O0 DWARF 5"} {
		t.Run(name, func(t *testing.T) {
			s, exe, core := subject(t, name)
			peer, err := s.GDB(exe, core, false)
			if err != nil {
				t.Fatal(err)
			}
			d := echo(peer)
			r := Compare(d, peer)
			for _, p := range r.Pairs {
				t.Error(p)
			}
			if r.Values[Equal] < 200 || len(r.Types) > 0 || len(r.Texts) > 0 {
				t.Errorf("%v, types that differ %v, texts %v: expected 200 equal values or more, and no differences", r.Values, r.Types, r.Texts)
			}
			t.Logf("%d frames, variables %v, values %v", r.Frames, r.Variables, r.Values)
			changed, n := 0, 0
			d.leaves(func(v *Value) {
				if n++; n%4 != 0 {
					return // a quarter of them, of every kind
				}
				was := v.Value
				for _, c := range []struct {
					value, status string
					want          Outcome
				}{{other(was), "ok", Wrong}, {"", "optimized-out", Miss}} {
					v.Value, v.Status = c.value, c.status
					now := Compare(d, peer)
					if n := now.Values[Equal]; now.Values[c.want]+now.Values[Explained] == 0 || n != r.Values[Equal]-1 {
						t.Fatalf("%s, %q in place of %q: %v, expected one value that is not equal: %s", v.Name, c.value, was, now.Values, c.want)
					}
					v.Value, v.Status = was, "ok"
				}
				changed++
			})
			t.Logf("%d values were changed", changed)
		})
	}
}

// other is another value that looks alike: its first digit, or a character, differs.
func other(text string) string {
	if kind, number, ok := strings.Cut(text, ")) 0x"); ok {
		return kind + ")) " + other("0x"+number) // a pointer to a member function
	}
	if number := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "0x"); number != "" && number[0] >= '0' && number[0] <= '9' {
		i := len(text) - len(number)
		return text[:i] + string('1'+(text[i]-'0'+1)%9) + text[i+1:]
	}
	switch text {
	case "true":
		return "false"
	case "false":
		return "true"
	}
	return strings.Replace(text, text[len(text)/2:len(text)/2+1], "~", 1)
}
