// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"debug/elf"
	"os"
	"testing"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/plugins/visa/stream"
	"github.com/unwindd/unwindd/sdk"
)

// genFile is an engine of one ELF file with its stream beside it.
type genFile struct {
	sdk.Engine
	elf    *elf.File
	stream []byte
}

func (f *genFile) ReadSection(_ context.Context, object uint64, name string) ([]byte, error) {
	if object == 2 {
		return f.stream, nil
	}
	return f.elf.Section(name).Data()
}

// genVariables are the variables of a kernel's file.
func genVariables(t *testing.T, name string) ([]sdk.Variable, *stream.Stream) {
	t.Helper()
	b, err := os.ReadFile("../plugins/visa/stream/testdata/" + name + ".dbg")
	if err != nil {
		t.Fatal(err)
	}
	s, err := stream.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	e, err := elf.Open("../plugins/visa/testdata/" + name + ".elf")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	req := &sdk.OpenObjectRequest{Object: 1, Machine: uint16(e.Machine), Companions: []sdk.Companion{{Suffix: ".dbg", Object: 2}}}
	for _, x := range e.Sections {
		req.Sections = append(req.Sections, sdk.SectionInfo{Name: x.Name, Type: uint32(x.Type), Flags: uint64(x.Flags), Size: x.Size})
	}
	a, err := visa.New().OpenObject(context.Background(), &genFile{elf: e, stream: b}, req)
	if err != nil {
		t.Fatal(err)
	}
	return a.Variables, s
}

// Each byte of a register, and of a scratch space, is another one.
func genPattern(n int) byte { return byte(n ^ n>>8*31) }

// What the engine reads where the plugin says that a variable is are the bytes
// that the stream names: of a register and those behind it, or of memory.
func TestVariablesOfVISAAreWhereTheStreamSays(t *testing.T) {
	for _, c := range []struct {
		name, processor string
		grf             int
		registers       int // that are read: where nothing tells how large they are, the first
		flags           bool
	}{{"skl-rec-O2-1", "skl", 32, 2, true}, {"pvc-rec-O0-1", "pvc", 64, 2, true}, {"tgllp-k-O2-1", "tgllp", 32, 1, false}} {
		list, s := genVariables(t, c.name)
		e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{visa.New()}}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		made := &walk.Synthetic{Arch: "visa", Processor: c.processor, Lanes: 16}
		file := make([]byte, 128*c.grf+4*c.grf)
		for i := range file {
			file[i] = genPattern(i)
		}
		for n := range 128 {
			made.Registers.Set(uint32(16+n), file[n*c.grf:][:c.grf])
		}
		flags := make([]byte, 4)
		for i := range flags {
			flags[i] = genPattern(1000 + i)
		}
		made.Registers.Set(288, flags)
		made.Registers.Set(272, file[:32])
		// By its name, which is one of several objects' each.
		where := map[string]map[stream.Location]bool{}
		for _, o := range s.Objects {
			for _, v := range o.Variables {
				for _, i := range v.Intervals {
					if where[v.Name] == nil {
						where[v.Name] = map[stream.Location]bool{}
					}
					where[v.Name][i.Location] = true
				}
			}
		}
		target := e.Attach(made)
		checked := map[stream.Storage]int{}
		for _, v := range list {
			for _, expr := range v.Locations {
				err := target.process.Evaluate(context.Background(), made.Thread(), 0, walk.Surroundings{}, nil, func(ctx locexpr.Context, ev *locexpr.Evaluator) error {
					l, err := ev.Location(t.Context(), expr, ctx)
					if err != nil {
						return err
					}
					for at := range where[v.Name] {
						var want []byte
						switch at.Storage {
						case stream.General:
							from := int(at.Register)*c.grf + int(at.Subregister)
							want = file[from:min((int(at.Register)+c.registers)*c.grf, 128*c.grf)]
						case stream.Flag:
							want = flags[2*at.Subregister:][:2]
						case stream.Address:
							want = file[2*at.Subregister:][:2]
						default:
							continue
						}
						got := make([]byte, len(want))
						if err := l.Read(t.Context(), ctx, got, 8*uint64(len(got))); err == nil && bytes.Equal(got, want) {
							checked[at.Storage]++
							return nil
						}
					}
					t.Errorf("%s: %s is at %v, which is none of %v", c.name, v.Name, l, where[v.Name])
					return nil
				})
				if err != nil {
					t.Errorf("%s: %s: %v", c.name, v.Name, err)
				}
			}
		}
		if checked[stream.General] < 10 || (checked[stream.Flag] > 0) != c.flags {
			t.Errorf("%s: %v of %d variables", c.name, checked, len(list))
		}
	}
}
