// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/plugins/visa/stream"
)

// debugStream has everything that a stream can have, and almost nothing in its
// first object.
func debugStream() *stream.Stream {
	memory := func(offset int32) stream.Location { return stream.Location{Storage: stream.Memory, Offset: offset} }
	general := func(register, sub uint16) stream.Location {
		return stream.Location{Storage: stream.General, Register: register, Subregister: sub}
	}
	return &stream.Stream{
		Layout:   stream.LayoutC,
		Problems: []string{"something is strange"},
		Objects: []stream.Object{
			{Name: "k\x1b", Frame: stream.Frame{CE: &stream.CE{}}},
			{
				Name: "f", RelocOffset: 0x530,
				OffsetMap: []stream.Mapping{{VISA: 4, Gen: 16}}, IndexMap: []stream.Mapping{{VISA: 1, Gen: 0}, {VISA: 12, Gen: 120}},
				Variables: []stream.Variable{
					{Name: "V32", Intervals: []stream.Interval{
						{Start: 1, End: 9, Virtual: stream.General, Location: general(60, 4)},
						{Start: 10, End: 12, Virtual: stream.General, Location: memory(-64)},
					}},
					{Name: "V33", Intervals: []stream.Interval{}},
					{Name: "A0", Intervals: []stream.Interval{{Start: 3, End: 3, Virtual: stream.Address, Location: stream.Location{Register: 1, Subregister: 2}}}},
					{Name: "P1", Intervals: []stream.Interval{{Start: 3, End: 4, Virtual: stream.Flag, Location: stream.Location{Storage: stream.Flag, Register: 1, Subregister: 1}}}},
					{Name: "V34", Intervals: []stream.Interval{
						{Start: 0, End: 7, Virtual: stream.General, Location: stream.Location{Storage: stream.Memory, IsAbsolute: true, Offset: 96}},
						{Start: 8, End: 9, Virtual: stream.General, Location: general(stream.NotAllocated, stream.NotAllocated)},
					}},
				},
				Subroutines: []stream.Subroutine{{Name: "leaf", Start: 30, End: 41, ReturnValue: []stream.Interval{{Start: 30, End: 41, Virtual: stream.General, Location: general(5, 8)}}}},
				Frame: stream.Frame{
					Size:          256,
					BEFP:          []stream.Interval{{Start: 72, End: 456, Virtual: stream.General, Location: general(125, 12)}},
					CallerBEFP:    []stream.Interval{{Start: 72, End: 456, Virtual: stream.General, Location: memory(12)}},
					ReturnAddress: []stream.Interval{},
					CE:            &stream.CE{Offset: 16, StoreIP: 80},
					CalleeSaves: []stream.Save{
						{GenOffset: 120, Registers: []stream.SavedRegister{
							{Offset: 1920, Bytes: 32, Location: memory(64)},
							{Offset: 1952, Bytes: 32, Location: memory(3072)},
							{Offset: 1990, Bytes: 4, Location: general(7, 8)},
						}},
						{GenOffset: 488, Registers: []stream.SavedRegister{}},
					},
					CallerSaves: []stream.Save{
						{GenOffset: 288, Registers: []stream.SavedRegister{
							{Offset: 3776, Bytes: 64, Location: stream.Location{Storage: stream.Memory, IsAbsolute: true, Offset: 128}},
						}},
					},
				},
			},
		},
	}
}

func TestVISAStreamAsText(t *testing.T) {
	want := `vISA debug stream, layout C
problem: something is strange

kernel "k\x1b"
  frame of 0 bytes, by Gen offset

function f at 0x530
  vISA offset  Gen offset
            4  0x10
  vISA index  Gen offset
           1  0x0
          12  0x78
  variables, by vISA index
    V32       1-9               general  r60.4
              10-12             general  be_fp-64
    V33       nowhere
    A0        3-3               address  a1.2
    P1        3-4               flag     f1.1
    V34       0-7               general  absolute+96
              8-9               general  no register
  subroutine leaf, vISA index 30 to 41
    return address  30-41             general  r5.8
  frame of 256 bytes, by Gen offset
    BE_FP           0x48-0x1c8        general  r125.12
    caller's BE_FP  0x48-0x1c8        general  be_fp+12
    return address  nowhere
    channel mask    from 0x50                  be_fp+16
    callee saves from 0x78
      r60        32 bytes  be_fp+64, corrected: unknown
      r61        32 bytes  be_fp+3072, corrected: unknown
      GRF+1990    4 bytes  r7.8
    callee saves from 0x1e8: none
    caller saves from 0x120
      r59        64 bytes  absolute+128
`
	for _, c := range []struct {
		name   string
		change func(*stream.Frame)
		to     map[string]string
	}{
		{"offsets that cannot be", func(*stream.Frame) {}, nil},
		{"an offset that is corrected", func(f *stream.Frame) { f.CalleeSaves[0].Registers[0].Location.Offset = 1024 }, map[string]string{
			"be_fp+64, corrected: unknown": "be_fp+1024, corrected: be_fp+64", "+3072, corrected: unknown": "+3072, corrected: be_fp+192",
		}},
		{"offsets as they should be", func(f *stream.Frame) { f.CalleeSaves[0].Registers[1].Location.Offset = 96 }, map[string]string{
			"be_fp+3072": "be_fp+96", ", corrected: unknown": "",
		}},
	} {
		s := debugStream()
		c.change(&s.Objects[1].Frame)
		var b strings.Builder
		if err := (&VISA{Stream: s}).WriteText(&b); err != nil {
			t.Fatal(err)
		}
		want := want
		for _, from := range []string{"be_fp+64, corrected: unknown", "+3072, corrected: unknown", "be_fp+3072", ", corrected: unknown"} {
			if to, ok := c.to[from]; ok {
				want = strings.ReplaceAll(want, from, to)
			}
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestVISAStreamAsJSON(t *testing.T) {
	interval := func(start, end, virtual, physical, register, subregister, base, offset string) string {
		return `{"start":` + start + `,"end":` + end + `,"virtual":"` + virtual + `","physical":"` + physical + `","register":` + register + `,"subregister":` + subregister + `,"base":` + base + `,"offset":` + offset + `}`
	}
	want := `{"layout":"C","objects":[
{"name":"k\u001b","reloc_offset":0,"offset_map":[],"index_map":[],"variables":[],"subroutines":[],
 "frame":{"size":0,"ce_offset":0,"ce_store_ip":0,"be_fp":null,"caller_be_fp":null,"return_address":null,"callee_saves":[],"caller_saves":[]}},
{"name":"f","reloc_offset":1328,"offset_map":[[4,16]],"index_map":[[1,0],[12,120]],"variables":[
 {"name":"V32","intervals":[` + interval("1", "9", "general", "general", "60", "4", "null", "null") + `,` + interval("10", "12", "general", "memory", "null", "null", `"be_fp"`, "-64") + `]},
 {"name":"V33","intervals":[]},
 {"name":"A0","intervals":[` + interval("3", "3", "address", "address", "1", "2", "null", "null") + `]},
 {"name":"P1","intervals":[` + interval("3", "4", "flag", "flag", "1", "1", "null", "null") + `]},
 {"name":"V34","intervals":[` + interval("0", "7", "general", "memory", "null", "null", `"absolute"`, "96") + `,` + interval("8", "9", "general", "general", "65535", "65535", "null", "null") + `]}],
 "subroutines":[{"name":"leaf","start":30,"end":41,"return_value":[` + interval("30", "41", "general", "general", "5", "8", "null", "null") + `]}],
 "frame":{"size":256,"ce_offset":16,"ce_store_ip":80,
  "be_fp":[` + interval("72", "456", "general", "general", "125", "12", "null", "null") + `],
  "caller_be_fp":[` + interval("72", "456", "general", "memory", "null", "null", `"be_fp"`, "12") + `],
  "return_address":[],
  "callee_saves":[{"gen_offset":120,"entries":[
   {"register_offset":1920,"bytes":32,"physical":"memory","register":null,"subregister":null,"base":"be_fp","offset":64},
   {"register_offset":1952,"bytes":32,"physical":"memory","register":null,"subregister":null,"base":"be_fp","offset":3072},
   {"register_offset":1990,"bytes":4,"physical":"general","register":7,"subregister":8,"base":null,"offset":null}]},
   {"gen_offset":488,"entries":[]}],
  "caller_saves":[{"gen_offset":288,"entries":[
   {"register_offset":3776,"bytes":64,"physical":"memory","register":null,"subregister":null,"base":"absolute","offset":128}]}]}}],
"problems":["something is strange","object 1 (\"f\"): frame: registers are saved beyond its 256 bytes: where the stream's frames save registers is unknown"]}`
	s := debugStream()
	for _, layout := range []stream.Layout{stream.LayoutC, stream.LayoutA} {
		if s.Layout = layout; layout == stream.LayoutA {
			want = strings.NewReplacer(`"layout":"C"`, `"layout":"A"`, `"ce_offset":0,"ce_store_ip":0`, `"ce_offset":null,"ce_store_ip":null`,
				`"ce_offset":16,"ce_store_ip":80`, `"ce_offset":null,"ce_store_ip":null`).Replace(want)
			s.Objects[0].Frame.CE, s.Objects[1].Frame.CE = nil, nil
		}
		var b strings.Builder
		if err := (&VISA{Stream: s}).WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		var got, expected any
		if err := errors.Join(json.Unmarshal([]byte(b.String()), &got), json.Unmarshal([]byte(want), &expected)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("layout %s: %s", layout, diff)
		}
	}
}

func TestVISAStreamWithoutObjects(t *testing.T) {
	v := &VISA{Stream: &stream.Stream{Layout: stream.LayoutA}}
	var text, doc strings.Builder
	if err := errors.Join(v.WriteText(&text), v.WriteJSON(&doc)); err != nil {
		t.Fatal(err)
	}
	if text.String() != "vISA debug stream, layout A\n" || strings.Join(strings.Fields(doc.String()), "") != `{"layout":"A","objects":[],"problems":[]}` {
		t.Errorf("%q %q", text.String(), doc.String())
	}
}
