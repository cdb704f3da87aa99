// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

func TestArchitecture(t *testing.T) {
	archtest.Test(t, New(), archtest.Options{Code: make([]byte, 64)})
}

func TestDescriptionIsWhatDescribeAnswers(t *testing.T) {
	d, err := New().Describe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Description(), d); diff != "" {
		t.Error(diff)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
}

// TestProcessorsOfHeaders has e_flags as ptxas of CUDA 11.8, 12.9 and 13.5 wrote them.
func TestProcessorsOfHeaders(t *testing.T) {
	for _, c := range []struct {
		osabi uint8
		flags uint32
		want  string
	}{
		{0x33, 0x00230523, "sm_35"}, {0x33, 0x00320532, "sm_50"}, {0x33, 0x003d053d, "sm_61"}, {0x33, 0x004b054b, "sm_75"},
		{0x33, 0x005a055a, "sm_90"}, {0x33, 0x005a0d5a, "sm_90a"}, {0x41, 0x06004b04, "sm_75"}, {0x41, 0x06005804, "sm_88"},
		{0x41, 0x06006402, "sm_100"}, {0x41, 0x0600640a, "sm_100a"}, {0x41, 0x06006502, "sm_101"}, {0x41, 0x06007902, "sm_121"},
		{0x41, 0x09007902, "sm_121"}, {0x33, 0x06004b04, ""}, {0, 0x004b054b, ""}, {0x41, 0x0600ff02, ""},
	} {
		if got := processorName(c.osabi, c.flags); got != c.want {
			t.Errorf("OS ABI %#x, flags %#x: %q, expected %q", c.osabi, c.flags, got, c.want)
		}
	}
}

// TestPreservedRegisters has the list of the ABI as its documents in debuggers write it.
func TestPreservedRegisters(t *testing.T) {
	want := map[uint32]bool{2: true}
	for _, r := range [][2]uint32{{16, 31}, {36, 39}, {44, 47}, {52, 55}, {60, 62}} {
		for n := r[0]; n <= r[1]; n++ {
			want[n] = true
		}
	}
	for first := uint32(68); first < 255; first += 8 {
		for n := first; n < first+4 && n < 255; n++ {
			want[n] = true
		}
	}
	for n := range uint32(256) {
		if got := isPreserved(n); got != want[n] {
			t.Errorf("R%d: preserved: %v", n, got)
		}
	}
}

func TestWindowsOfGenericAddresses(t *testing.T) {
	for _, c := range []struct {
		shared, local uint64
		want          []sdk.MapRange
	}{
		{0, 0, nil},
		{0x7f0001000000, 0x7f0002000000, []sdk.MapRange{
			{Start: 0x7f0001000000, Size: window, Into: shared}, {Start: 0x7f0002000000, Size: window, Into: local}}},
		{0x7f0002000000, 0x7f0001000000, []sdk.MapRange{
			{Start: 0x7f0001000000, Size: window, Into: local}, {Start: 0x7f0002000000, Size: window, Into: shared}}},
		{0x7f0001000000, 0x7f0001000001, nil}, // they overlap
		{^uint64(0), 0, nil},
	} {
		list := maps([]sdk.SpaceBase{{Space: shared, Base: c.shared}, {Space: local, Base: c.local}})
		var got []sdk.MapRange
		for _, m := range list {
			if m.Space == generic {
				got = m.Ranges
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%#x, %#x: %s", c.shared, c.local, diff)
		}
	}
}

func TestInstructionsAreWords(t *testing.T) {
	code := make([]byte, 40)
	code[0], code[16] = 1, 2
	for _, c := range []struct {
		processor string
		address   uint64
		sizes     []uint32
	}{
		{"sm_90", 0x100, []uint32{16, 16, 8}}, {"", 0x108, []uint32{8, 16, 16}}, {"sm_61", 0x100, []uint32{8, 8, 8, 8, 8}}, {"sm_100a", 0, []uint32{16, 16, 8}},
	} {
		a, err := New().Disassemble(context.Background(), &sdk.DisassembleRequest{Address: c.address, Code: code, Processor: c.processor})
		if err != nil {
			t.Fatal(err)
		}
		var sizes []uint32
		for _, i := range a.Instructions {
			sizes = append(sizes, i.Size)
		}
		if diff := cmp.Diff(c.sizes, sizes); diff != "" {
			t.Errorf("%s: %s", c.processor, diff)
		}
	}
}
